"""`warpzone record`: film an agent, or what a person played."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console

from warpzone.cli.flags import parse
from warpzone.engine.rom import rom
from warpzone.envs.replays import load_replay
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError
from warpzone.run.agent import load_agent
from warpzone.run.recording import Film, record_best, record_episode, record_replay
from warpzone.run.stopping import EXIT_OK


@dataclass(frozen=True)
class RecordConfig:
    """Film an episode, every frame of it, as MP4 or GIF."""

    checkpoint: str = "mario"
    """A checkpoint file, or a run's name for its best one."""
    runs_dir: Path = Path("runs")
    """Where runs are kept."""
    replay: Path | None = None
    """Film a replay that warpzone play saved, instead of an agent."""
    rom: str = ""
    """Path of the .nes file; by default WARPZONE_ROM, else the one in the installed package."""
    stage: str = ""
    """Stage to play; by default the first of the training."""
    out: Path | None = None
    """File to write, .mp4 or .gif, or the folder for an MP4; by default the current one."""
    greedy: bool = False
    """Take the likeliest action instead of drawing one."""
    any_episode: bool = False
    """Film the first episode, cleared or not, instead of looking for one that clears."""
    overlay: bool = True
    """Show the policy's probabilities and value beside the picture."""
    scale: int = 2
    """Enlarge the picture so many times."""
    seed: int = 0
    """Of the episode."""
    dry_run: bool = False
    """Print what would be filmed and do nothing."""

    def __post_init__(self) -> None:
        if not 1 <= self.scale <= 8:
            raise ConfigError("--scale is a whole number from 1 to 8.")
        if self.out is not None and self.out.suffix not in (".mp4", ".gif") and not self.out.is_dir():
            raise ConfigError(f"--out must end in .mp4 or .gif, not {self.out.suffix!r}.")


def run(argv: list[str]) -> int:
    """Parse and film; the exit code."""
    config = parse(RecordConfig(), argv, "warpzone record", RecordConfig.__doc__ or "")
    if config.replay is not None:
        return _film_replay(config, config.replay)
    agent = load_agent(config.checkpoint, config.runs_dir, torch.device("cpu"))
    assert agent.meta is not None
    trained = agent.meta.config.get("stage", {})
    names = config.stage or trained.get("stages") or f"{trained.get('world', 1)}-{trained.get('stage', 1)}"
    stage = parse_stages(names)[0]
    out = _target(config, f"{Path(config.checkpoint).stem}_{stage}.mp4")
    if config.dry_run:
        print(f"[record] {stage} of {config.checkpoint} to {out}")
        return EXIT_OK
    console = Console()
    agent.view = replace(agent.view, noop_max=0)
    with console.status(f"recording an episode of {stage}"):
        if config.any_episode or config.greedy:
            film = record_episode(
                agent,
                stage,
                out,
                greedy=config.greedy,
                seed=config.seed,
                overlay=config.overlay,
                scale=config.scale,
                rom=config.rom,
            )
        else:
            film = record_best(
                agent,
                stage,
                out,
                seed=config.seed,
                overlay=config.overlay,
                scale=config.scale,
                rom=config.rom,
            )
    _report(console, film, f"{film.decisions} decisions")
    return EXIT_OK


def _film_replay(config: RecordConfig, path: Path) -> int:
    name = path.name.removesuffix(".json").removesuffix(".replay").removesuffix(".start")
    replay, out = load_replay(path), _target(config, f"{name}.mp4")
    if config.dry_run:
        print(f"[record] {len(replay.buttons)} frames of {path} to {out}")
        return EXIT_OK
    console = Console()
    with console.status(f"recording {path}"):
        film = record_replay(replay, rom(config.rom or None), out, scale=config.scale)
    _report(console, film, f"{film.frames} frames")
    return EXIT_OK


def _target(config: RecordConfig, name: str) -> Path:
    if config.out is None:
        return Path(name)
    return config.out / name if config.out.is_dir() else config.out


def _report(console: Console, film: Film, length: str) -> None:
    verdict = "cleared" if film.cleared else f"reached x={film.x_max}"
    console.print(f"[record] {film.path}: {verdict} in {length}", markup=False, soft_wrap=True)
