"""Training and playing from Python: what `warpzone train`, `eval` and `record` do, as functions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch

from warpzone import custom_code
from warpzone.agents import agent as agents
from warpzone.agents.evaluation import MODES, Mode, StageResult, Trial, evaluate
from warpzone.agents.recording import Style, Video, record_best, record_episode
from warpzone.checkpoints.settings import from_json
from warpzone.cluster.train import train as train_anywhere
from warpzone.envs.config import StageConfig, as_size
from warpzone.envs.make import make_envs
from warpzone.envs.stages import parse_stages
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError, nearest
from warpzone.run.config import Preset, RunConfig, TrainConfig
from warpzone.run.device import named_device
from warpzone.run.log import Display, Silent
from warpzone.run.loop import Outcome
from warpzone.run.memory_ladder import train_within_memory
from warpzone.run.presets import preset as preset_settings
from warpzone.run.presets import suited_to_stages
from warpzone.run.saved_settings import settings_to_resume

Stages = str | Sequence[str]


class Agent(agents.Agent):
    """A trained policy. Make one with `load_agent`; `warpzone.train(...).agent` is one too."""

    def stages(self) -> list[str]:
        """The stages it was trained on."""
        return from_json(StageConfig, (self.meta.config if self.meta else {}).get("stage", {})).names()

    def evaluate(
        self, stages: Stages | None = None, episodes: int = 100, mode: Mode = "sampled", **trial: Any
    ) -> list[StageResult]:
        """Play fresh episodes from the true start of each stage.

        Args:
            stages: such as "1-1", "all", ["1-1", "1-2"] or the generated levels "levels-0-199@0.3" (seeds and
                difficulty); by default those of the training.
            episodes: for each stage. Greedy play has no more than one for each number of idle frames.
            mode: "sampled", "greedy", or "sticky" (sampled, and buttons stick with probability 0.25).
            trial: other fields of `Trial`, such as seed, noop_max and sticky.

        Returns:
            One `StageResult` for each stage: `stage`, `episodes`, `clears`, `clear_rate`, `interval` (Wilson, 95 %),
            `mean_return`, `mean_x`, `max_x`, `mean_steps` and `ends`.
        """
        if mode not in MODES:
            raise ConfigError(f"Unknown mode {mode!r}: choose {', '.join(MODES)}.")
        if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
            raise ConfigError(f"episodes is a whole number from 1 on, not {episodes!r}.")
        known = [f.name for f in fields(Trial)]
        for name in trial:
            _known(name, known)
        if "sticky" in trial and mode != "sticky":
            raise ConfigError('sticky is the probability of mode="sticky": give that mode too.')
        names = self.stages() if stages is None else _names(stages)
        return evaluate(self, names, Trial(episodes=episodes, mode=mode, **trial))

    def record(
        self,
        stage: str,
        path: str | PathLike[str],
        *,
        tries: int = 8,
        greedy: bool = False,
        seed: int = 0,
        overlay: bool = True,
        scale: int = 2,
    ) -> Video:
        """Record an episode as .mp4 or .gif: one of the first `tries` that clears, else the one that got furthest.

        Returns:
            The `Video`: `path`, `cleared`, `x_max`, `decisions` and `frames`.
        """
        style, name = Style(overlay=overlay, scale=scale), _names(stage)[0]
        if Path(path).suffix not in (".mp4", ".gif"):
            raise ConfigError(f"{path} must end in .mp4 or .gif.")
        if greedy:
            return record_episode(self, self.view, name, Path(path), style, greedy=True, seed=seed)
        return record_best(self, name, Path(path), style, tries=tries, seed=seed)

    def make_env(self, num_envs: int = 1, stage: Stages = "1-1", **options: Any) -> MarioVectorEnv:
        """Environments with the agent's own view; `options` are those of `MarioVectorEnv`, such as seed."""
        return make_envs(self.view, num_envs, _names(stage), **options)


def load_agent(
    path_or_run: str | PathLike[str],
    runs_dir: str | PathLike[str] = "runs",
    device: str = "auto",
    *,
    encoder: Any = None,
    trust_code: bool = False,
) -> Agent:
    """Load a trained agent.

    Args:
        path_or_run: a run's name below `runs_dir` or its folder (its best checkpoint), a checkpoint file, or a
            weights file with its card (.safetensors).
        device: "auto", "cpu", "cuda" or "cuda:N".
        encoder: the class of an agent with a custom encoder, or its "file.py:Class".
        trust_code: run the encoder's code that is kept in the run's folder. Without one of the two no code runs that
            came with an agent.

    Raises:
        CheckpointError: there is no such agent, or it is damaged.
    """
    name = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    loaded = agents.load_agent(
        str(path_or_run), Path(runs_dir), named_device(name), threads=torch.get_num_threads(),
        encoder="" if encoder is None else custom_code.named(encoder), trust_code=trust_code,
    )  # fmt: skip
    return Agent(loaded.policy, loaded.view, loaded.device, loaded.meta)


def train(
    stages: Stages | None = None, preset: Preset = "auto", *, display: bool | Display = False, **settings: Any
) -> Outcome:
    """Train an agent, as `warpzone train` does; a run that exists is resumed with its own settings.

    Args:
        stages: such as "1-1", "all" or ["1-1", "1-2"].
        preset: "cpu", "gpu", or "auto": the settings of the run that is resumed, else what suits this machine.
        display: True shows the run on the terminal; or an object with `update(record)` and `say(line)`.
        settings: any setting of `warpzone train` by its name: num_envs=16, total_steps=200_000, run_name="mario",
            until_clear_rate=0.9, ... `encoder` and `reward_function` also take a class and a function themselves.
            Unlike there, `record_video` is off unless it is asked for, and environment variables do not count.

    Returns:
        An `Outcome`: `folder`, `progress` (`update`, `global_step`, `elapsed_s`, `clear_rate`), `reason`,
        `exit_code` (0, or what the command would exit with), `confirmed` (results on fresh episodes by stage, where
        `until_clear_rate` is set) and `agent`.

    Raises:
        ConfigError: a setting is unknown, has a wrong value, or does not go with the others.
    """
    given = settings if stages is None else {"stages": stages, **settings}
    config = resolve({"record_video": False, **given}, preset)
    with _shown(config, display) as shown:
        outcome = train_within_memory(config, shown, train_anywhere)
    trained = outcome.agent
    if trained is None:
        return outcome
    agent = Agent(trained.policy, trained.view, trained.device, trained.meta)
    if config.run.record_video and outcome.progress.update and not outcome.exit_code:
        stage, rom = config.stage.names()[0], config.stage.rom or None
        path = outcome.folder / "videos" / f"final_{stage}.mp4"
        try:
            record_best(agent, stage, path, Style(overlay=True), seed=config.run.seed, rom=rom)
        except (OSError, ConfigError) as error:
            warnings.warn(f"no video: {error}", stacklevel=2)
    return replace(outcome, agent=agent)


def resolve(given: Mapping[str, Any], preset: Preset = "auto") -> TrainConfig:
    """The settings of a run from flat names: preset or the run that is resumed, changed by what is given."""
    groups = {f.name: get_type_hints(type(getattr(TrainConfig(), f.name))) for f in fields(TrainConfig)}
    known = {name: group for group, kinds in groups.items() for name in kinds}
    changes: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        group = known[_known(name, list(known))]
        changes.setdefault(group, {})[name] = _value(name, value, groups[group][name])
    run = changes.get("run", {})
    if run.get("dry_run"):
        raise ConfigError("dry_run prints settings, which only the command line does: leave it out.")
    config = None
    if preset == "auto" and not run.get("fresh"):
        folder = Path(run.get("runs_dir", RunConfig.runs_dir)) / run.get("run_name", RunConfig.run_name)
        config = settings_to_resume(folder, given)
    saved, config = config, config or preset_settings(preset)
    config = replace(config, **{group: replace(getattr(config, group), **c) for group, c in changes.items()})
    config = config.resolved()
    if saved is None:
        config = suited_to_stages(config, given.__contains__)
    config.check()
    return config


def _names(stages: Stages) -> list[str]:
    """The names of stages, and of generated levels, which `make_envs` knows."""
    words = [word.strip() for word in stages.split(",")] if isinstance(stages, str) else stages
    levels = [word for word in words if "@" in str(word)] if isinstance(words, Sequence) else []
    plain = [word for word in words if word not in levels] if levels else stages
    return [*(parse_stages(plain) if plain or not levels else []), *levels]


def _known(name: str, known: Sequence[str]) -> str:
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else "see docs/settings.md."
        raise ConfigError(f"There is no setting {name!r}: {hint}")
    return name


def _value(name: str, value: Any, kind: Any) -> Any:
    """A value as its setting wants it: paths, lists of stages, one number for a square and code as they are said."""
    if name in ("encoder", "reward_function") and callable(value):
        return custom_code.named(value)
    if name == "size":
        return as_size(value)
    if name in ("stages", "trails") and isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    for one in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        if get_origin(one) is Literal:
            fits = value in get_args(one)
        elif one in (int, float):
            whole = isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer())
            fits = not isinstance(value, bool) and (whole or (one is float and isinstance(value, float)))
            value = one(value) if fits else value
        elif one is str:
            fits = isinstance(value, str | PathLike)
            value = str(value) if fits else value
        else:
            fits = isinstance(value, get_origin(one) or one)
        if fits:
            return value
    shown = ", ".join(map(repr, get_args(kind))) or getattr(kind, "__name__", str(kind))
    raise ConfigError(f"{name} can't be {value!r}: it is {shown}.")


def _shown(config: TrainConfig, display: bool | Display) -> Any:
    """The display as a context manager."""
    if display is True:
        from warpzone.cli.display import TrainDisplay

        return TrainDisplay(config)
    return nullcontext(display or Silent())
