"""The agents that a run follows: found in a folder, for each stage the one that clears it most often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from warpzone import custom_code
from warpzone.agents.agent import load_agent
from warpzone.agents.weights_file import SUFFIX, read_card
from warpzone.checkpoints.finding import best_checkpoint
from warpzone.checkpoints.saving import read_meta
from warpzone.checkpoints.settings import from_json
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.envs.config import StageConfig, ViewConfig
from warpzone.errors import CheckpointError, ConfigError, Error
from warpzone.learn.distillation import Teachers
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy
from warpzone.run.build import learning_threads
from warpzone.run.config import TrainConfig

SEEN = (
    "frame_skip",
    "frame_stack",
    "observation",
    "palette",
    "crop_hud",
    "max_pool",
    "show_buttons",
    "action_type",
)
"""What of the view a teacher must share with the student: what it sees and what it can press."""


@dataclass(frozen=True)
class Candidate:
    """An agent that may teach, by what is said of it; its weights are not read yet."""

    name: str
    path: Path
    meta: CheckpointMeta

    def rates(self) -> dict[str, float]:
        """How often it cleared each of its stages when it was saved."""
        learned = self.meta.config.get("stage")
        stages = from_json(StageConfig, learned).names() if learned else []
        return {**dict.fromkeys(stages, 0.0), **self.meta.clear_rate}

    def check_fits(self, view: ViewConfig, rom_sha256: str) -> None:
        """Refuse one that sees, presses or plays something else than a student with this view."""
        config = self.meta.config
        if "view" not in config or "model" not in config:
            raise CheckpointError("nothing says how it sees the game")
        theirs = from_json(ViewConfig, config["view"])
        for name in SEEN:
            if getattr(theirs, name) != getattr(view, name):
                raise CheckpointError(
                    f"its {name} is {getattr(theirs, name)!r} and this run's is {getattr(view, name)!r}"
                )
        if any(large > small for large, small in zip(theirs.size, view.size, strict=True)):
            raise CheckpointError(f"its frames are {theirs.size} and this run's only {view.size}")
        model = from_json(ModelConfig, config["model"])
        if custom_code.is_reference(model.encoder) and not custom_code.is_named(model.encoder):
            raise CheckpointError("its encoder is code that came with it, and that is not run unasked")
        if model.recurrent_type != "none":
            raise CheckpointError("it has a memory, and what it remembers is not known here")
        if self.meta.rom_sha256 not in (None, rom_sha256):
            raise CheckpointError("it learned on another ROM")


def load_teachers(
    config: TrainConfig, rom_sha256: str, device: torch.device, say: Callable[[str], None], own: Path
) -> Teachers | None:
    """The teachers that `--teachers` asks for; it says who teaches what, and who can't and why.

    Nobody follows himself: the run's `own` folder is left out.
    """
    if not config.run.teachers:
        return None
    folder, stages = Path(config.run.teachers), config.stage.names()
    chosen: dict[str, tuple[float, Candidate]] = {}
    for path in _agents_in(folder, own):
        try:
            one = _candidate(path)
            rates = {s: r for s, r in one.rates().items() if s in stages and r >= config.run.teacher_rate}
            if rates:
                one.check_fits(config.view, rom_sha256)
        except Error as error:
            say(f"[train] {path.name} can't teach here: {error}")
            continue
        for stage, rate in rates.items():
            if stage not in chosen or rate > chosen[stage][0]:
                chosen[stage] = rate, one
    if not chosen:
        raise ConfigError(
            f"Nobody in {folder} who can teach here clears one of the stages in {config.run.teacher_rate:.0%} of its "
            "episodes: choose another folder or a lower --teacher-rate."
        )
    named = ", ".join(f"{stage} {chosen[stage][1].name if stage in chosen else 'nobody'}" for stage in stages)
    say(f"[train] {len(chosen)} of {len(stages)} stages have a teacher: {named}")
    loaded: dict[Path, Policy] = {}
    for _, one in chosen.values():
        if one.path not in loaded:
            loaded[one.path] = _load(one, config, device)
    policies = {stages.index(stage): loaded[one.path] for stage, (_, one) in chosen.items()}
    return Teachers(policies, config.learn.teacher_temperature)


def _agents_in(folder: Path, own: Path) -> list[Path]:
    """Agents' files in a folder and the runs in it that have checkpoints, or the one run that it is; never `own`."""
    if not folder.is_dir():
        raise ConfigError(
            f"There is no folder {folder} with teachers: name another one, or --teachers '' for none."
        )
    paths = [folder] if _is_run(folder) else sorted(folder.iterdir())
    return [p for p in paths if (p.suffix == SUFFIX or _is_run(p)) and p.resolve() != own.resolve()]


def _candidate(path: Path) -> Candidate:
    if path.suffix == SUFFIX:
        return Candidate(path.stem, path, read_card(path))
    best = best_checkpoint(path)
    return Candidate(path.name, best, read_meta(best))


def _is_run(path: Path) -> bool:
    return any((path / "checkpoints").glob("*.pt"))


def _load(one: Candidate, config: TrainConfig, device: torch.device) -> Policy:
    """Its policy, in the precision that the student learns in."""
    agent = load_agent(str(one.path), Path(config.run.runs_dir), device, learning_threads(config, device))
    if device.type == "cuda" and config.learn.amp:
        agent.policy.autocast_dtype = getattr(torch, config.learn.amp_dtype)
    return agent.policy
