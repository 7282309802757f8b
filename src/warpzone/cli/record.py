"""`warpzone record`: record a video of an agent, or of what a person played."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from warpzone.agents.montage import record_montage
from warpzone.agents.recording import Style, record_best, record_episode, record_replay
from warpzone.cli.eval import open_agent
from warpzone.cli.flags import parse
from warpzone.cli.progress import Bars
from warpzone.cli.settings import TrainedAgent, writing
from warpzone.engine.rom import rom as find_rom
from warpzone.envs.replays import load_replay
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK

if TYPE_CHECKING:
    from warpzone.agents.agent import Agent

VIDEOS = (".mp4", ".gif")


@dataclass(frozen=True)
class RecordConfig(TrainedAgent):
    """Record an episode, every frame of it, as MP4 or GIF."""

    replay: Path | None = None
    """Replay from `warpzone play` to record instead of an agent."""
    stage: str = ""
    """Stage to play; by default the first trained on."""
    stages: str = ""
    """Stages to play, one video each; in a montage by default those trained on."""
    montage: Path | None = None
    """Video (.mp4 or .gif) of many stages at once, as a grid."""
    tries: int = 8
    """Episodes to choose from per stage."""
    out: Path | None = None
    """Video to write (.mp4 or .gif), or a folder."""
    greedy: bool = False
    """Take the greedy action instead of a sampled one."""
    any_episode: bool = False
    """Record the first episode, cleared or not."""
    overlay: bool = True
    """Show action probabilities and value beside the frame."""
    scale: int = 2
    """Magnification, 1 to 8."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        if not 1 <= self.scale <= 8:
            raise ConfigError("--scale is a whole number from 1 to 8.")
        if self.tries < 1:
            raise ConfigError("--tries must be at least 1.")
        for flag, path in (("--montage", self.montage), ("--out", self.out)):
            is_folder = flag == "--out" and path is not None and path.is_dir()
            if path is not None and path.suffix not in VIDEOS and not is_folder:
                raise ConfigError(f"{flag} must end in .mp4 or .gif, not {path.suffix!r}.")
        if self.montage is not None:
            names = ("replay", "out", "greedy", "any_episode", "scale")
            unused = [name for name in names if getattr(self, name) != getattr(RecordConfig, name)]
            if unused:
                flags = " and ".join("--" + name.replace("_", "-") for name in unused)
                raise ConfigError(
                    f"--montage shows the best sampled episode of each stage, at one size: leave {flags} out."
                )


SETTINGS = {"": RecordConfig}


def run(argv: list[str]) -> int:
    config = parse(RecordConfig(), argv, "warpzone record")
    if config.replay is not None:
        _record_replay(config, config.replay)
        return EXIT_OK
    # One stage may be named as an exception to many, as by a flag beside an environment variable.
    named = parse_stages(config.stage or config.stages) if config.stage or config.stages else []
    agent, trained = open_agent(config, "record", "cpu")
    if config.montage is not None:
        _record_montage(config, agent, config.montage, named or trained)
        return EXIT_OK
    stages = named or trained[:1]
    if len(stages) > 1 and config.out is not None and not config.out.is_dir():
        raise ConfigError(
            f"--out is one video and there are {len(stages)} stages: name a folder that exists."
        )
    for stage in stages:
        _record_stage(config, agent, stage)
    return EXIT_OK


def _record_stage(config: RecordConfig, agent: Agent, stage: str) -> None:
    out = _target(config, f"{Path(config.checkpoint).stem}_{stage}.mp4")
    if config.dry_run:
        print(f"[record] {stage} of {config.checkpoint} to {out}")
        return
    style, rom = Style(overlay=config.overlay, scale=config.scale), config.rom or None
    with writing(out), Console().status(f"recording an episode of {stage}"):
        if config.any_episode or config.greedy:
            view = agent.view.fixed(sticky=agent.view.sticky)
            video = record_episode(
                agent, view, stage, out, style, greedy=config.greedy, seed=config.seed, rom=rom
            )
        else:
            video = record_best(agent, stage, out, style, tries=config.tries, seed=config.seed, rom=rom)
    print(f"[record] {video.path}: {video.verdict} in {video.decisions} decisions")


def _record_montage(config: RecordConfig, agent: Agent, out: Path, stages: list[str]) -> None:
    if config.dry_run:
        print(f"[record] {len(stages)} stages of {config.checkpoint} to {out}")
        return
    with writing(out, "--montage"), Bars("record", "stages") as bars:
        search = bars.add_task("playing", total=len(stages))
        frames = bars.add_task("recording", total=None, units="frames")
        takes = record_montage(
            agent, stages, out, tries=config.tries, seed=config.seed, threads=config.threads, rom=config.rom,
            on_search=lambda done, total: bars.update(search, completed=done),
            on_frame=lambda done, total: bars.update(frames, completed=done, total=total),
        )  # fmt: skip
    cleared = sum(take.cleared for take in takes)
    print(f"[record] {out}: {cleared} of {len(takes)} stages cleared")


def _record_replay(config: RecordConfig, path: Path) -> None:
    name = path.name.removesuffix(".json").removesuffix(".replay").removesuffix(".start")
    replay, out = load_replay(path), _target(config, f"{name}.mp4")
    if config.dry_run:
        print(f"[record] {len(replay.buttons)} frames of {path} to {out}")
        return
    with writing(out), Console().status(f"recording {path}"):
        video = record_replay(replay, find_rom(config.rom or None), out, scale=config.scale)
    print(f"[record] {video.path}: {video.verdict} in {video.frames} frames")


def _target(config: RecordConfig, name: str) -> Path:
    if config.out is None:
        return Path(name)
    return config.out / name if config.out.is_dir() else config.out
