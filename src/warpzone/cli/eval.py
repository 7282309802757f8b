"""`warpzone eval`: measure how well an agent plays."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import TaskID
from rich.table import Table

from warpzone.agents.evaluation import MODES, Mode, StageResult, Trial, evaluate
from warpzone.agents.scoreboard import as_markdown, as_png, mean_rate
from warpzone.agents.whole_game import GameResult, evaluate_game
from warpzone.checkpoints.settings import from_json
from warpzone.cli.flags import parse
from warpzone.cli.info import made
from warpzone.cli.progress import Bars
from warpzone.cli.settings import TrainedAgent, writing
from warpzone.envs.config import StageConfig, cores
from warpzone.envs.stages import GAME, parse_stages
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK
from warpzone.watch.durable import write_durably

if TYPE_CHECKING:
    from warpzone.agents.agent import Agent


@dataclass(frozen=True)
class EvalConfig(TrainedAgent):
    """Play fresh episodes from the true start of each stage and count the clears."""

    stages: str = ""
    """Stages: all, a world, names, or game (from power-on); by default those trained on."""
    levels: str = ""
    """Generated levels by their seeds, such as 1000-1199, as one stage."""
    difficulty: float = 0.3
    """Difficulty of generated levels, 0 to 1."""
    episodes: int = 100
    """Episodes per stage and mode."""
    mode: str = "all"
    """Comma-separated modes: sampled, greedy, sticky; both (the first two) or all."""
    noop_max: int = 30
    """Maximum idle frames before an episode starts, sampled uniformly."""
    random_start: float = 0.0
    """Share of episodes that start as if in the middle of a game; greedy: none."""
    sticky: float = 0.25
    """Probability per frame that buttons stick, in sticky mode."""
    temperature: float = 0.0
    """Divides the logits before sampling (0 = the agent's own, usually 1)."""
    seed: int = 12345
    """Random seed."""
    device: str = "cpu"
    """Device: cpu or cuda."""
    lost_levels: bool = False
    """Play the Lost Levels."""
    out: Path | None = None
    """File (.json, .md, .png) for the results, or folder for all three."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError("--episodes must be at least 1.")
        if self.out is not None and self.out.suffix not in ("", *KINDS) and not self.out.is_dir():
            raise ConfigError(f"--out ends in .json, .md or .png, or is a folder, not {self.out.suffix!r}.")
        if self.levels and not re.fullmatch(r"\d{1,18}(-\d{1,18})?", self.levels):
            raise ConfigError(
                f"--levels is a seed or a range of seeds such as 1000-1199, not {self.levels!r}."
            )
        if self.levels and self.lost_levels:
            raise ConfigError("Generated levels are not played with the Lost Levels: give one of the two.")
        if not 0 <= self.temperature < math.inf:
            raise ConfigError(f"--temperature is a number above 0, not {self.temperature!r}.")
        if not 0 <= self.difficulty <= 1:
            raise ConfigError(f"--difficulty is a number from 0 to 1, not {self.difficulty!r}.")
        self.modes()

    def modes(self) -> list[Mode]:
        """How the episodes are played."""
        short: dict[str, tuple[str, ...]] = {"both": MODES[:2], "all": MODES}
        names = short.get(self.mode) or tuple(part.strip() for part in self.mode.split(","))
        for name in names:
            if name not in MODES:
                raise ConfigError(f"Unknown mode {name!r}: choose {', '.join(MODES)}, both or all.")
        return [mode for mode in MODES if mode in names]

    def title(self) -> str:
        played = "Lost Levels, " if self.lost_levels else ""
        sticky = f", sticky {self.sticky:g}" if "sticky" in self.modes() else ""
        starts = f", random starts {self.random_start:g}" if self.random_start else ""
        name = Path(self.checkpoint).name
        if self.temperature:
            name += f" at temperature {self.temperature:g}"
        # All generated levels together count as one stage.
        each = "" if self.levels and not self.stages else " a stage"
        return f"{name}: {played}{self.episodes} episodes{each}, up to {self.noop_max} no-ops{starts}{sticky}"


SETTINGS = {"": EvalConfig}
KINDS = (".json", ".md", ".png")
"""What can be written, by the ending of the file's name."""
Results = dict[str, list[StageResult]]
"""Results of single stages by mode."""


def run(argv: list[str]) -> int:
    config = parse(EvalConfig(), argv, "warpzone eval")
    agent, stages = open_agent(config, "eval", config.device)
    agent.temperature = config.temperature or agent.temperature
    if config.stages or config.lost_levels:
        stages = parse_stages(config.stages or "all", lost_levels=config.lost_levels)
    if config.levels:
        stages = [*(stages if config.stages else []), f"levels-{config.levels}@{config.difficulty:g}"]
    if config.dry_run:
        print(json.dumps({"stages": stages, "modes": config.modes(), "episodes": config.episodes}))
        return EXIT_OK
    if stages == [GAME] and config.out is not None and config.out.suffix in (".md", ".png"):
        raise ConfigError(f"The whole game is written as .json, not as {config.out.suffix}: change --out.")
    console = Console()
    results, games = _play(config, agent, stages, console)
    if results:
        wide = console if console.is_terminal else Console(width=max(console.width, IN_A_LOG))
        wide.print(result_table(results, config))
        if {"sampled", "sticky"} <= set(config.modes()):
            print(
                f"[eval] report the sampled rate; sticky is harder: buttons stick with probability {config.sticky:g}"
            )
    for mode, game in games.items():
        print(f"[eval] whole game, {mode}: {game}")
    if config.out is not None:
        document = as_json(results, games, config, agent)
        _write(config.out, results, document, config)
    return EXIT_OK


def open_agent(chosen: TrainedAgent, command: str, device: str) -> tuple[Agent, list[str]]:
    """The agent and the stages it was trained on; says which one plays."""
    # Not above, as torch takes seconds to load: help and refused flags need not wait for it.
    from warpzone.agents.agent import load_agent, resolve_checkpoint
    from warpzone.run.device import named_device

    path = resolve_checkpoint(chosen.checkpoint, chosen.runs_dir)
    threads, on = chosen.threads or cores(), named_device(device)
    agent = load_agent(str(path), chosen.runs_dir, on, threads, trust_code=chosen.trust_code)
    assert agent.meta is not None
    update, decisions = agent.meta.global_update, agent.meta.global_step
    # A dry run prints what would be done, and nothing else, to standard output.
    to = sys.stderr if chosen.dry_run else sys.stdout
    print(f"[{command}] playing {path} (update {update:,}, {decisions:,} decisions)", file=to, flush=True)
    return agent, from_json(StageConfig, agent.meta.config.get("stage", {})).names()


def _play(
    config: EvalConfig, agent: Agent, stages: list[str], console: Console
) -> tuple[Results, dict[str, GameResult]]:
    """The results of single stages and of whole games, by mode."""
    results: Results = {}
    games: dict[str, GameResult] = {}
    single = [stage for stage in stages if stage != GAME]
    options: dict[str, Any] = {"lost_levels": config.lost_levels, "rom": config.rom or None}
    with Bars("eval", "episodes", console) as bars:
        for mode in config.modes():
            trial = Trial(
                config.episodes, mode, config.noop_max, config.sticky, config.seed, config.threads,
                config.random_start,
            )  # fmt: skip
            task = bars.add_task(mode, total=len(stages) * trial.episodes_of())

            played: dict[str, int] = {}

            def advance(
                stage: str, done: int, total: int, mode: str = mode, task: TaskID = task,
                played: dict[str, int] = played,
            ) -> None:  # fmt: skip
                played[stage] = done
                bars.update(task, description=f"{mode} {stage}", completed=sum(played.values()))

            if single:
                results[mode] = evaluate(agent, single, trial, advance, **options)
            if GAME in stages:
                games[mode] = evaluate_game(agent, trial, partial(advance, GAME), **options)
            bars.update(task, description=mode)
    return results, games


def _write(out: Path, results: Results, document: dict[str, Any], config: EvalConfig) -> None:
    folder = out.is_dir() or not out.suffix
    paths = [out / f"eval{kind}" for kind in KINDS if results or kind == ".json"] if folder else [out]
    for path in paths:
        if path.suffix == ".json":
            data = (json.dumps(document, indent=2) + "\n").encode()
        elif path.suffix == ".md":
            data = as_markdown(results, config.title()).encode()
        else:
            data = as_png(results, config.title())
        with writing(path):
            write_durably(path, data)
        print(f"[eval] wrote {path}")


def as_json(
    results: Results, games: dict[str, GameResult], config: EvalConfig, agent: Agent
) -> dict[str, Any]:
    assert agent.meta is not None
    return {
        **made(),
        "checkpoint": config.checkpoint,
        "global_step": agent.meta.global_step,
        "episodes": config.episodes,
        "noop_max": config.noop_max,
        "random_start": config.random_start,
        "sticky": config.sticky,
        "temperature": agent.temperature,
        "device": config.device,
        "seed": config.seed,
        "lost_levels": config.lost_levels,
        "results": {mode: [r.as_dict() for r in rows] for mode, rows in results.items()},
        "game": {mode: result.as_dict() for mode, result in games.items()},
    }


IN_A_LOG = 120
"""Width of a table where no terminal limits it."""


def result_table(results: Results, config: EvalConfig) -> Table:
    table = Table(title=config.title())
    for column in ("stage", "mode", "cleared", "mean x", "max x", "decisions", "ends"):
        text = column in ("stage", "ends")  # the only ones to wrap where the terminal is narrow
        table.add_column(
            column,
            justify="left" if text or column == "mode" else "right",
            no_wrap=not text,
            overflow="fold",
            min_width=8 if column == "ends" else None,
        )
    for mode, rows in results.items():
        for r in rows:
            ends = " ".join(f"{name}:{count}" for name, count in r.ends.items())
            low, high = r.interval
            cleared = f"{r.clear_rate:.1%} ({low:.0%} to {high:.0%})"
            numbers = (cleared, f"{r.mean_x:,.0f}", f"{r.max_x:,}", f"{r.mean_steps:,.0f}")
            table.add_row(r.stage, mode, *numbers, ends)
        if len(rows) > 1:
            table.add_row("mean", mode, f"{mean_rate(rows):.1%}", "", "", "", "", style="bold")
    return table
