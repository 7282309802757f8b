"""What benchmarks share: sides timed in turn, ratios with their spread, a table, a JSON file."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from warpzone.cli.info import made
from warpzone.cli.settings import writing


def rate(work: Callable[[], int], seconds: float) -> float:
    """Units per second of `work`, which returns the units it did; called at least once, for about so many seconds."""
    done, began = 0, time.perf_counter()
    while not done or time.perf_counter() - began < seconds:
        done += work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return done / (time.perf_counter() - began)


def in_turn(
    sides: Mapping[str, Callable[[], float]], rounds: int, console: Console
) -> dict[str, list[float]]:
    """Measure every side once in each round, so that a busy machine is busy for all of them."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("measuring", total=rounds * len(sides))
        for _ in range(rounds):
            for name, measure in sides.items():
                bars.update(task, description=name)
                rates[name].append(measure())
                bars.advance(task)
    return rates


def ratio(rates: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """How many times the base, round by round: the median, the least and the most."""
    ratios = sorted(one / other for one, other in zip(rates, base, strict=True))
    return {"median": statistics.median(ratios), "low": ratios[0], "high": ratios[-1]}


def spread(times: Mapping[str, float], pattern: str = ".2f") -> str:
    """A ratio as text: the median, and the least and the most in brackets."""
    middle, low, high = (format(times[name], pattern) for name in ("median", "low", "high"))
    return f"{middle} ({low} - {high})"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Words in the first column, numbers in the others."""
    shown = Table(title=title)
    for at, column in enumerate(columns):
        shown.add_column(column, justify="right" if at else "left")
    for row in rows:
        shown.add_row(*row)
    return shown


def write_json(path: Path | None, name: str, results: dict[str, Any], console: Console) -> None:
    """Keep the results with the processor they were measured on: in a file, or under `name` in a folder."""
    if path is None:
        return
    path = path / name if path.is_dir() else path
    with writing(path):
        path.write_text(json.dumps({**made(), **results}, indent=2) + "\n")
    console.print(f"[benchmark] wrote {path}", markup=False, highlight=False, soft_wrap=True)
