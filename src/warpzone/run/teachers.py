"""The agents that a run follows: found in a folder, one for each stage, the one that clears it most often."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from warpzone.envs.config import ViewConfig
from warpzone.errors import CheckpointError, ConfigError
from warpzone.learn.teachers import Teachers
from warpzone.model.policy import Policy
from warpzone.run.agent import Agent, from_json, load_agent
from warpzone.run.config import StageConfig, TrainConfig
from warpzone.run.weights_file import SUFFIX

SEEN = ("frame_skip", "frame_stack", "observation", "palette", "crop_hud", "max_pool", "action_type")
"""What of the view a teacher must share with the student: what it sees and what it can press."""


def load_teachers(
    config: TrainConfig, device: torch.device, say: Callable[[str], None], own: Path
) -> Teachers | None:
    """The teachers that `--teachers` asks for, and in a line who teaches what. Nobody follows himself: the run's
    `own` folder is left out."""
    if not config.run.teachers:
        return None
    folder, stages = Path(config.run.teachers), config.stage.names()
    chosen: dict[str, tuple[float, str, Agent]] = {}
    for path in _found(folder):
        if path.resolve() == own.resolve():
            continue
        agent = load_agent(str(path), Path(config.run.runs_dir), device)
        _check(agent, config.view, path)
        for stage, rate in _rates(agent).items():
            is_better = stage not in chosen or rate > chosen[stage][0]
            if stage in stages and rate >= config.run.teacher_rate and is_better:
                chosen[stage] = rate, path.stem, agent
    if not chosen:
        raise ConfigError(
            f"Nobody in {folder} clears one of the stages in {config.run.teacher_rate:.0%} of its episodes: "
            "choose another folder or a lower --teacher-rate."
        )
    named = ", ".join(f"{stage} {chosen[stage][1] if stage in chosen else 'nobody'}" for stage in stages)
    say(f"[train] {len(chosen)} of {len(stages)} stages have a teacher: {named}")
    policies = {stages.index(stage): _ready(agent, config) for stage, (_, _, agent) in chosen.items()}
    return Teachers(policies, config.learn.teacher_temperature)


def _found(folder: Path) -> Iterator[Path]:
    """Agents' files in a folder, and the runs in it that have a checkpoint."""
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder} with teachers.")
    for path in sorted(folder.iterdir()):
        if path.suffix == SUFFIX or any((path / "checkpoints").glob("*.pt")):
            yield path


def _rates(agent: Agent) -> dict[str, float]:
    """How often it cleared each of its stages when it was saved."""
    assert agent.meta is not None
    stages = from_json(StageConfig, agent.meta.config["stage"]).names()
    return {stage: agent.meta.clear_rate.get(stage, 0.0) for stage in stages}


def _check(agent: Agent, view: ViewConfig, path: Path) -> None:
    """Refuse a teacher that sees or presses something else than the student."""
    for name in SEEN:
        theirs, ours = getattr(agent.view, name), getattr(view, name)
        if theirs != ours:
            raise CheckpointError(
                f"{path} can't teach here: its {name} is {theirs!r} and this run's is {ours!r}."
            )
    if any(theirs > ours for theirs, ours in zip(agent.view.size, view.size, strict=True)):
        raise CheckpointError(
            f"{path} can't teach here: its pictures are {agent.view.size} and this run's only {view.size}."
        )
    if agent.policy.is_recurrent:
        raise CheckpointError(
            f"{path} can't teach: it has a memory, and what it remembers is not known here."
        )


def _ready(agent: Agent, config: TrainConfig) -> Policy:
    """Its policy, in the precision that the student learns in."""
    if agent.device.type == "cuda" and config.learn.amp:
        agent.policy.autocast_dtype = getattr(torch, config.learn.amp_dtype)
    return agent.policy
