"""`warpzone record`: film an agent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console

from warpzone.cli.flags import parse
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError
from warpzone.run.agent import load_agent
from warpzone.run.recording import record_best, record_episode
from warpzone.run.stopping import EXIT_OK


@dataclass(frozen=True)
class RecordConfig:
    """Film an episode, every frame of it, as MP4 or GIF."""

    checkpoint: str = "mario"
    """A checkpoint file, or a run's name for its best one."""
    runs_dir: Path = Path("runs")
    """Where runs are kept."""
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
    agent = load_agent(config.checkpoint, config.runs_dir, torch.device("cpu"))
    assert agent.meta is not None
    trained = agent.meta.config.get("stage", {})
    names = config.stage or trained.get("stages") or f"{trained.get('world', 1)}-{trained.get('stage', 1)}"
    stage = parse_stages(names)[0]
    name = f"{Path(config.checkpoint).stem}_{stage}.mp4"
    out = (config.out / name if config.out.is_dir() else config.out) if config.out else Path(name)
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
            )
        else:
            film = record_best(
                agent, stage, out, seed=config.seed, overlay=config.overlay, scale=config.scale
            )
    verdict = "cleared" if film.cleared else f"reached x={film.x_max}"
    console.print(
        f"[record] {film.path}: {verdict} in {film.decisions} decisions", markup=False, soft_wrap=True
    )
    return EXIT_OK
