"""What benchmarks have in common: sides measured in turn, ratios with their spread, a JSON file."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from warpzone.cli.info import made
from warpzone.errors import ConfigError


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


def write_json(path: Path | None, name: str, results: dict[str, Any], console: Console) -> None:
    """Keep the results with the processor they were measured on: in a file, or under `name` in a folder."""
    if path is None:
        return
    path = path / name if path.is_dir() else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**made(), **results}, indent=2) + "\n")
    except OSError as error:
        raise ConfigError(
            f"{path} can't be written ({error.strerror or error}): choose another --out."
        ) from error
    console.print(f"[benchmark] wrote {path}", markup=False, highlight=False, soft_wrap=True)
