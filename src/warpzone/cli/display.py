"""The training run on a terminal: a live table on a screen, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from warpzone.run.config import TrainConfig

PLAIN_EVERY_S = 5.0
SHOWN_STAGES = 32


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
        self.goal, self.label = _goal(config)
        self.task = self.bar.add_task(self.label, total=1.0)
        self.live: Live | None = None
        self.began = time.monotonic()
        self.last_plain = 0.0

    def __enter__(self) -> TrainDisplay:
        if self.live_wanted:
            self.live = Live(Group(self.bar), console=self.console, refresh_per_second=4, transient=False)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def say(self, line: str) -> None:
        """A line of the log."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def update(self, record: dict[str, Any]) -> None:
        """A new record of the metrics."""
        self.bar.update(self.task, completed=self._completed(record))
        if self.live is not None:
            self.live.update(Group(self.bar, self._table(record)))
        elif time.monotonic() - self.last_plain >= PLAIN_EVERY_S:
            self.last_plain = time.monotonic()
            self.say(_line(record))
            sys.stdout.flush()

    def _completed(self, record: dict[str, Any]) -> float:
        run = self.config.run
        shares = [0.0]
        if run.total_updates:
            shares.append(record["update"] / run.total_updates)
        if run.total_steps:
            shares.append(record["global_step"] / run.total_steps)
        if run.time_limit and not (run.until_clear_rate or run.total_updates or run.total_steps):
            shares.append(record["elapsed_s"] / (60 * run.time_limit))
        if run.until_clear_rate:
            shares.append((record["clear_rate_mean"] or 0.0) / run.until_clear_rate)
        return min(1.0, max(shares))

    def _table(self, record: dict[str, Any]) -> Table:
        table = Table.grid(padding=(0, 2))
        for _ in range(4):
            table.add_column()
        rows = [
            ("decisions", number(record["global_step"]), "decisions/s", number(record["env_steps_per_sec"])),
            (
                "update",
                number(record["update"]),
                "time collecting",
                number(record["collect_share"], "{:.0%}"),
            ),
            (
                "return",
                number(record["avg_return"], "{:.2f}"),
                "time learning",
                number(record["learn_share"], "{:.0%}"),
            ),
            ("furthest x", number(record["env_max_x_pos"]), "mean x", number(record["env_mean_x_pos"])),
            ("entropy", number(record["entropy"], "{:.3f}"), "KL", number(record["approx_kl"], "{:.4f}")),
            (
                "stagnating",
                number(record["stagnation_envs"]),
                "first flag",
                number(record["time_to_first_flag"], "{:.0f} s"),
            ),
        ]
        for left, a, right, b in rows:
            table.add_row(f"[dim]{left}", a, f"[dim]{right}", b)
        rates = record["clear_rate"] or {}
        for stage, rate in list(rates.items())[:SHOWN_STAGES]:
            table.add_row(f"[dim]clear rate {stage}", f"[bold green]{rate:.0%}" if rate else "0%", "", "")
        return table


def _line(record: dict[str, Any]) -> str:
    return (
        f"[train] {record['elapsed_s']:7.1f}s update {record['update']} steps {record['global_step']:,} "
        f"{number(record['env_steps_per_sec'])}/s clear {number(record['clear_rate_mean'], '{:.0%}')} "
        f"return {number(record['avg_return'], '{:.2f}')} x {number(record['env_mean_x_pos'])} "
        f"entropy {number(record['entropy'], '{:.2f}')} collect {number(record['collect_share'], '{:.0%}')}"
    )


def _goal(config: TrainConfig) -> tuple[str, str]:
    run = config.run
    stages = config.stage.names()
    where = stages[0] if len(stages) == 1 else f"{len(stages)} stages"
    if run.until_clear_rate:
        return "clear", f"{where}: clear rate towards {run.until_clear_rate:.0%}"
    return "work", f"{where}: training"
