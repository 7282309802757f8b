"""The training run on a terminal: a live table on a screen, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from warpzone.run.config import TrainConfig

PLAIN_EVERY_S = 5.0


def number(value: Any, pattern: str = "{:,.0f}", missing: str = "–") -> str:
    return missing if value is None else pattern.format(value)


class TrainDisplay:
    """Follows a run; use as a context manager."""

    def __init__(self, config: TrainConfig, console: Console | None = None) -> None:
        self.console = console or Console()
        self.config = config
        self.live_wanted = self.console.is_terminal and not config.watch.plain
        self.bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            console=self.console,
            expand=True,
        )
        stages = config.stage.names()
        self.where = stages[0] if len(stages) == 1 else f"{len(stages)} stages"
        self.task = self.bar.add_task(f"{self.where}: starting", total=1.0)
        self.live: Live | None = None
        self.last_plain_s = 0.0

    def __enter__(self) -> TrainDisplay:
        if self.live_wanted:
            self.live = Live(Group(self.bar), console=self.console, refresh_per_second=4, transient=False)
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live is not None:
            self.live.stop()

    def say(self, line: str) -> None:
        """A line of the log."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def update(self, record: dict[str, Any]) -> None:
        """A new record of the metrics."""
        share, goal = nearest_goal(self.config, record)
        self.bar.update(self.task, completed=share, description=f"{self.where}: {goal}")
        if self.live is not None:
            self.live.update(Group(self.bar, *tables(record)))
        elif time.monotonic() - self.last_plain_s >= PLAIN_EVERY_S:
            self.last_plain_s = time.monotonic()
            for line in plain_lines(record):
                self.say(line)
            sys.stdout.flush()


def nearest_goal(config: TrainConfig, record: dict[str, Any]) -> tuple[float, str]:
    """How much of the way to the run's end is done, by the goal that is nearest, and that goal in words."""
    run = config.run
    update, steps, minutes = record["update"], record["global_step"], record["elapsed_s"] / 60
    rate = record["clear_rate_mean"] or 0.0
    goals = [(0.0, "training")]
    if run.total_updates:
        goals.append((update / run.total_updates, f"update {update:,} of {run.total_updates:,}"))
    if run.total_steps:
        goals.append((steps / run.total_steps, f"step {steps:,} of {run.total_steps:,}"))
    if run.time_limit:
        goals.append((minutes / run.time_limit, f"minute {minutes:.1f} of {run.time_limit:g}"))
    if run.until_clear_rate:
        goals.append((rate / run.until_clear_rate, f"clears {rate:.0%} of {run.until_clear_rate:.0%}"))
    share, goal = max(goals)
    return min(1.0, share), goal


def tables(record: dict[str, Any]) -> list[RenderableType]:
    """The numbers under the bar, and the clear rate of every stage in as many columns as fit."""
    pairs = [
        ("decisions", number(record["global_step"])),
        ("decisions/s", number(record["env_steps_per_sec"])),
        ("update", number(record["update"])),
        ("collecting", number(record["collect_share"], "{:.0%} of time")),
        ("return", number(record["avg_return"], "{:.2f}")),
        ("learning", number(record["learn_share"], "{:.0%} of time")),
        ("furthest x", number(record["env_max_x_pos"])),
        ("mean x", number(record["env_mean_x_pos"])),
        ("entropy", number(record["entropy"], "{:.3f}")),
        ("KL", number(record["approx_kl"], "{:.4f}")),
        ("stagnating", number(record["stagnation_envs"])),
        ("first flag", number(record["time_to_first_flag"], "{:.0f} s")),
    ]
    if record["replay_fill_rate"] is not None:
        pairs += [
            ("replay", number(record["replay_fill_rate"], "{:.0%} full")),
            ("unique", number(record["replay_avg_unique_ratio"], "{:.0%} of draws")),
        ]
    if record["gpu_util_mean_window"] is not None:
        pairs += [
            ("GPU", number(record["gpu_util_mean_window"], "{:.0f}% busy")),
            ("GPU memory", number(record["gpu_mem_used_mb"], "{:,.0f} MB")),
        ]
    grid = Table.grid(padding=(0, 2))
    for left, right in zip(pairs[::2], pairs[1::2], strict=True):
        grid.add_row(f"[dim]{left[0]}", left[1], f"[dim]{right[0]}", right[1])
    rates = record["clear_rate"] or {}
    if not rates:
        return [grid]
    shown = [f"{stage} [bold green]{rate:.0%}" if rate else f"{stage} 0%" for stage, rate in rates.items()]
    stages = Table.grid(padding=(0, 2))
    stages.add_row("[dim]clear rate", Columns(shown, padding=(0, 2)))
    return [grid, stages]


def plain_lines(record: dict[str, Any]) -> list[str]:
    """The same for a file or a pipe."""
    lines = [
        f"[train] {record['elapsed_s']:7.1f}s update {record['update']} steps {record['global_step']:,} "
        f"{number(record['env_steps_per_sec'])}/s clear {number(record['clear_rate_mean'], '{:.0%}')} "
        f"return {number(record['avg_return'], '{:.2f}')} x {number(record['env_mean_x_pos'])} "
        f"entropy {number(record['entropy'], '{:.2f}')} collect {number(record['collect_share'], '{:.0%}')}"
    ]
    if record["replay_fill_rate"] is not None:
        # Here, as it loads torch, which the first line of a run does not wait for.
        from warpzone.learn.replay import format_replay_stat

        lines.append(format_replay_stat(record))
    return lines
