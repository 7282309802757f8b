"""A master's run on a terminal: a live board on a screen, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from warpzone.master.state import AGENT, State

PLAIN_EVERY_S = 15.0
COLOURS = {"done": "green", "running": "cyan", "failed": "red", "ended": "yellow", "skipped": "dim"}


class Board:
    """Shows the state; use as a context manager."""

    def __init__(self, console: Console, *, plain: bool = False) -> None:
        self.console = console
        # No thread of its own refreshes it: processes are started beside it.
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal and not plain else None
        self._shown_s = 0.0

    def __enter__(self) -> Board:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def show(self, state: State) -> None:
        if self.live is not None:
            self.live.update(picture(state), refresh=True)
        elif time.monotonic() - self._shown_s >= PLAIN_EVERY_S:
            self._shown_s = time.monotonic()
            self.say(line_of(state))


def left_s(state: State) -> float:
    return max(0.0, 60 * float(state.settings["minutes"]) - state.spent_s)


def stage_rates(state: State) -> Iterator[tuple[str, str, float | None, float | None]]:
    """Stage, status of its specialist, the specialist's clear rate and the policy's."""
    policies = [state.policies[run] for run in (state.polished_run, "student") if run in state.policies]
    for one in state.specialists.values():
        for stage in one.stages:
            own = next((p.clear_rate[stage] for p in policies if stage in p.clear_rate), None)
            yield stage, one.status, one.clear_rate.get(stage), own


def percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0%}"


def line_of(state: State) -> str:
    """Everything in one line: the policy's clear rates, or the specialists' while these train."""
    phase = next((name for name, p in state.phases.items() if p.status == "running"), state.status)
    rates = " ".join(
        f"{stage} {percent(rate if policy is None or phase == 'specialists' else policy)}"
        for stage, _, rate, policy in stage_rates(state)
    )
    return f"[master] {phase}, {left_s(state) / 60:.1f} minutes left: {rates}"


def picture(state: State) -> RenderableType:
    """The phases, and a field for every stage."""
    phases = Table("phase", "spent", "planned", "status", title=f"{left_s(state) / 60:.1f} minutes left")
    for name, phase in state.phases.items():
        colour = COLOURS.get(phase.status, "default")
        status = Text(f"{phase.status} {phase.note}".strip(), style=colour)
        phases.add_row(name, f"{phase.spent_s:.0f} s", f"{phase.planned_s:.0f} s", status)
    fields = [
        Text(f"{stage} {percent(rate)} {percent(policy)}", style=COLOURS.get(status, "default"))
        for stage, status, rate, policy in stage_rates(state)
    ]
    return Group(phases, Text("stage, specialist, policy", style="dim"), Columns(fields, padding=(0, 3)))


def summary(state: State, folder: Path) -> list[str]:
    """What there is in the end, and what to do with it."""
    if state.status != "done":
        return [f"[master] {folder}: {state.status} after {state.spent_s / 60:.1f} minutes"]
    means = {
        mode: sum(row["clear_rate"] for row in rows.values()) / len(rows)
        for mode, rows in state.evaluations[state.chosen].items()
    }
    shown = ", ".join(f"{mode} {mean:.1%}" for mode, mean in means.items())
    agent = folder / AGENT
    return [
        f"[master] {agent}: {shown} of the episodes cleared, after {state.spent_s / 60:.1f} minutes",
        *(f"[master] short of the target: {stage} {why}" for stage, why in state.short.items()),
        f"[master] results: {folder / 'eval.md'}; how it was made: {agent.with_suffix('.json')}",
        f"[master] watch:   warpzone record --checkpoint {agent} --stages all --montage stages.mp4",
        f"[master] curves:  warpzone watch --runs-dir {folder}",
    ]
