"""`warpzone record`: record a video of an agent, or of what a person played."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from warpzone.agents.agent import Agent, from_json
from warpzone.agents.montage import record_montage
from warpzone.agents.recording import Style, Video, record_best, record_episode, record_replay
from warpzone.cli.eval import open_agent
from warpzone.cli.flags import parse
from warpzone.engine.rom import rom as find_rom
from warpzone.envs.config import StageConfig
from warpzone.envs.replays import load_replay
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK


@dataclass(frozen=True)
class RecordConfig:
    """Record an episode, every frame of it, as MP4 or GIF."""

    checkpoint: str = "mario"
    """Checkpoint or agent file, or a run's name for its best checkpoint."""
    runs_dir: Path = Path("runs")
    """Folder of all runs."""
    trust_code: bool = False
    """Run the custom encoder kept in the run's folder; read it first."""
    replay: Path | None = None
    """Replay from `warpzone play` to record instead of an agent."""
    rom: str = ""
    """Path of the ROM; by default $WARPZONE_ROM or the installed package's."""
    stage: str = ""
    """Stage to play; by default the first trained on."""
    montage: Path | None = None
    """Video (.mp4 or .gif) of many stages at once, as a grid."""
    stages: str = ""
    """Stages of the montage; by default those trained on."""
    tries: int = 8
    """Episodes to choose from per stage of the montage."""
    threads: int = 0
    """Emulation threads of the montage (0 = one per core)."""
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
    dry_run: bool = False
    """Print what would be recorded and exit."""

    def __post_init__(self) -> None:
        if not 1 <= self.scale <= 8:
            raise ConfigError("--scale is a whole number from 1 to 8.")
        if self.tries < 1:
            raise ConfigError("--tries must be at least 1.")
        if self.montage is not None and self.montage.suffix not in (".mp4", ".gif"):
            raise ConfigError(f"--montage must end in .mp4 or .gif, not {self.montage.suffix!r}.")
        if self.stages and self.montage is None:
            raise ConfigError("--stages is for a --montage; one stage is filmed with --stage.")
        if self.out is not None and self.out.suffix not in (".mp4", ".gif") and not self.out.is_dir():
            raise ConfigError(f"--out must end in .mp4 or .gif, not {self.out.suffix!r}.")


SETTINGS = {"": RecordConfig}


def run(argv: list[str]) -> int:
    """Parse and record; the exit code."""
    config = parse(RecordConfig(), argv, "warpzone record")
    if config.replay is not None:
        return _record_replay(config, config.replay)
    agent, played = open_agent(
        config.checkpoint, config.runs_dir, "cpu", config.threads, trust_code=config.trust_code
    )
    print(f"[record] playing {played}", flush=True)
    assert agent.meta is not None
    trained = from_json(StageConfig, agent.meta.config.get("stage", {})).names()
    if config.montage is not None:
        return _record_montage(config, agent, config.montage, trained)
    stage = parse_stages(config.stage)[0] if config.stage else trained[0]
    out = _target(config, f"{Path(config.checkpoint).stem}_{stage}.mp4")
    if config.dry_run:
        print(f"[record] {stage} of {config.checkpoint} to {out}")
        return EXIT_OK
    console = Console()
    style, rom = Style(overlay=config.overlay, scale=config.scale), config.rom or None
    with console.status(f"recording an episode of {stage}"):
        if config.any_episode or config.greedy:
            view = replace(agent.view, noop_max=0)
            video = record_episode(
                agent, view, stage, out, style, greedy=config.greedy, seed=config.seed, rom=rom
            )
        else:
            video = record_best(agent, stage, out, style, tries=config.tries, seed=config.seed, rom=rom)
    _report(console, video, f"{video.decisions} decisions")
    return EXIT_OK


def _record_montage(config: RecordConfig, agent: Agent, out: Path, trained: list[str]) -> int:
    stages = parse_stages(config.stages) if config.stages else trained
    if config.dry_run:
        print(f"[record] {len(stages)} stages of {config.checkpoint} to {out}")
        return EXIT_OK
    try:
        # Before the long work.
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{out} can't be written ({error.strerror}): choose another --montage.") from error
    console = Console()
    with Progress(console=console, transient=True) as bars:
        search, frames = bars.add_task("playing", total=len(stages)), bars.add_task("recording", total=None)
        takes = record_montage(
            agent, stages, out, tries=config.tries, seed=config.seed, threads=config.threads, rom=config.rom,
            on_search=lambda done, total: bars.update(search, completed=done),
            on_frame=lambda done, total: bars.update(frames, completed=done, total=total),
        )  # fmt: skip
    cleared = sum(take.cleared for take in takes)
    console.print(f"[record] {out}: {cleared} of {len(takes)} stages cleared", markup=False, soft_wrap=True)
    return EXIT_OK


def _record_replay(config: RecordConfig, path: Path) -> int:
    name = path.name.removesuffix(".json").removesuffix(".replay").removesuffix(".start")
    replay, out = load_replay(path), _target(config, f"{name}.mp4")
    if config.dry_run:
        print(f"[record] {len(replay.buttons)} frames of {path} to {out}")
        return EXIT_OK
    console = Console()
    with console.status(f"recording {path}"):
        video = record_replay(replay, find_rom(config.rom or None), out, scale=config.scale)
    _report(console, video, f"{video.frames} frames")
    return EXIT_OK


def _target(config: RecordConfig, name: str) -> Path:
    if config.out is None:
        return Path(name)
    return config.out / name if config.out.is_dir() else config.out


def _report(console: Console, video: Video, length: str) -> None:
    console.print(f"[record] {video.path}: {video.verdict} in {length}", markup=False, soft_wrap=True)
