"""`warpzone eval`: measure how well an agent plays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from warpzone.cli.flags import parse
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError
from warpzone.run.agent import evaluation_view, load_agent
from warpzone.run.config import named_device
from warpzone.run.evaluate import StageResult, evaluate_stage
from warpzone.run.stopping import EXIT_OK


@dataclass(frozen=True)
class EvalConfig:
    """Play fresh episodes from the true start of each stage and count the clears."""

    checkpoint: str = "mario"
    """A checkpoint file, or a run's name for its best one."""
    runs_dir: Path = Path("runs")
    """Where runs are kept."""
    stages: str = ""
    """Stages to play: 'all', a world, or names; by default those of the training."""
    episodes: int = 100
    """Episodes for each stage and mode."""
    mode: str = "both"
    """sampled, greedy or both."""
    noop_max: int = 30
    """An episode begins after a random number of idle frames, at most this many."""
    sticky: float = 0.0
    """Probability, frame by frame, that the buttons stay as they were."""
    seed: int = 12345
    """Of the episodes."""
    threads: int = 0
    """Threads that emulate; 0 takes one for each core."""
    device: str = "cpu"
    """cpu or cuda."""
    lost_levels: bool = False
    """Play the Lost Levels, which no agent here was trained on."""
    out: Path | None = None
    """Write the results as JSON to this file, or as eval.json into this folder."""
    dry_run: bool = False
    """Print what would be played and do nothing."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError("--episodes must be at least 1.")
        if self.mode not in ("sampled", "greedy", "both"):
            raise ConfigError(f"Unknown mode {self.mode!r}: choose sampled, greedy or both.")


def run(argv: list[str]) -> int:
    """Parse, play and print; the exit code."""
    config = parse(EvalConfig(), argv, "warpzone eval", EvalConfig.__doc__ or "")
    agent = load_agent(config.checkpoint, config.runs_dir, named_device(config.device))
    assert agent.meta is not None
    trained = agent.meta.config.get("stage", {})
    names = config.stages or trained.get("stages") or f"{trained.get('world', 1)}-{trained.get('stage', 1)}"
    stages = parse_stages(names, lost_levels=config.lost_levels)
    modes = ["sampled", "greedy"] if config.mode == "both" else [config.mode]
    if config.dry_run:
        print(json.dumps({"stages": stages, "modes": modes, "episodes": config.episodes}))
        return EXIT_OK
    console = Console()
    view = evaluation_view(agent.view, noop_max=config.noop_max, sticky=config.sticky)
    results: dict[str, list[StageResult]] = {mode: [] for mode in modes}
    with Progress(console=console, transient=True) as bars:
        for mode in modes:
            task = bars.add_task(mode, total=len(stages) * config.episodes)
            for done, stage in enumerate(stages):
                result = evaluate_stage(
                    agent, view, stage, episodes=config.episodes, greedy=mode == "greedy", seed=config.seed,
                    threads=config.threads, lost_levels=config.lost_levels,
                    progress=partial(_advance, bars, task, done * config.episodes),
                )  # fmt: skip
                assert result is not None
                results[mode].append(result)
    console.print(result_table(results, config))
    if config.out is not None:
        out = config.out / "eval.json" if config.out.is_dir() else config.out
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(as_json(results, config, agent.meta.global_step), indent=2) + "\n")
        except OSError as error:
            raise ConfigError(f"{out} can't be written ({error.strerror}): choose another --out.") from error
        console.print(f"[eval] wrote {out}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK


def _advance(bars: Progress, task: TaskID, before: int, done: int, total: int) -> None:
    bars.update(task, completed=before + done)


def as_json(results: dict[str, list[StageResult]], config: EvalConfig, global_step: int) -> dict[str, Any]:
    return {
        "checkpoint": config.checkpoint,
        "global_step": global_step,
        "episodes": config.episodes,
        "noop_max": config.noop_max,
        "sticky": config.sticky,
        "seed": config.seed,
        "lost_levels": config.lost_levels,
        "results": {mode: [r.as_dict() for r in rows] for mode, rows in results.items()},
    }


def result_table(results: dict[str, list[StageResult]], config: EvalConfig) -> Table:
    randomness = f"up to {config.noop_max} no-ops" + (f", sticky {config.sticky}" if config.sticky else "")
    table = Table(title=f"{config.checkpoint}: {config.episodes} episodes, {randomness}")
    for column in ("stage", "mode", "cleared", "mean x", "max x", "decisions", "ends"):
        table.add_column(column, justify="left" if column in ("stage", "mode", "ends") else "right")
    for mode, rows in results.items():
        for r in rows:
            ends = " ".join(f"{name}:{count}" for name, count in r.ends.items())
            table.add_row(
                r.stage,
                mode,
                f"{r.clear_rate:.1%}",
                f"{r.mean_x:,.0f}",
                f"{r.max_x:,}",
                f"{r.mean_steps:,.0f}",
                ends,
            )
        if len(rows) > 1:
            mean = sum(r.clear_rate for r in rows) / len(rows)
            table.add_row("mean", mode, f"{mean:.1%}", "", "", "", "", style="bold")
    return table
