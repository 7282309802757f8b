"""The charts of a report: each takes the histories of one or more runs and returns a matplotlib figure, or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from warpzone.watch.jsonl import Record

Histories = Mapping[str, Sequence[Record]]
"""Run name -> its records in order."""
Series = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

_WIDTH, _HEIGHT = 8.0, 3.6


def charts(histories: Histories) -> dict[str, Figure]:
    """Title -> figure, for each field with numbers in the records."""
    drawn = {
        "Return": _curve(histories, "avg_return", "mean return of the last 100 episodes"),
        "Return quantiles": _quantiles(histories),
        "Clear rate": _curve(histories, "clear_rate_mean", "share of recent episodes cleared", top=1.0),
        "Clear rate per stage": _clear_rate_per_stage(histories),
        "Throughput": _curve(histories, "env_steps_per_sec", "environment steps per second"),
        "Share of time": _time_split(histories),
        "Losses": _several(histories, ("loss_policy", "loss_value", "loss_per", "loss_teacher")),
        "Entropy": _curve(histories, "entropy", "nats"),
        "Learning": _several(histories, ("approx_kl", "clip_fraction", "explained_variance", "policy_lag")),
        "Distance": _curve(histories, "env_max_x_pos", "furthest x in the interval, pixels"),
        "Replay health": _several(
            histories, ("replay_fill_rate", "replay_last_unique_ratio", "replay_avg_unique_ratio")
        ),
        "GPU": _several(histories, ("gpu_util_mean_window", "gpu_mem_used_mb")),
    }
    return {title: figure for title, figure in drawn.items() if figure is not None}


def series(records: Sequence[Record], value: str | Callable[[Record], Any]) -> Series:
    """(global_step, value) of the records that have both."""
    get = (lambda record: record.get(value)) if isinstance(value, str) else value
    pairs = [(record.get("global_step"), get(record)) for record in records]
    known = [(x, y) for x, y in pairs if isinstance(x, int | float) and isinstance(y, int | float)]
    points = np.array(known, np.float64).reshape(-1, 2)
    return points[:, 0], points[:, 1]


def _axes(label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel("environment steps")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    return figure, axes


def _finish(figure: Figure, axes: Axes) -> Figure | None:
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return None
    axes.legend(handles, labels, fontsize="small", ncols=1 if len(labels) < 8 else 3)
    return figure


def _draw(axes: Axes, points: Series, label: str, **style: Any) -> None:
    x, y = points
    if len(x):
        # A run's first record alone would otherwise be an empty chart.
        axes.plot(x, y, label=label, marker="." if len(x) < 20 else None, linewidth=1.3, **style)


def _curve(histories: Histories, field: str, label: str, top: float | None = None) -> Figure | None:
    figure, axes = _axes(label)
    for name, records in histories.items():
        _draw(axes, series(records, field), name)
    if top is not None:
        axes.set_ylim(-0.02 * top, 1.02 * top)
    return _finish(figure, axes)


def _several(histories: Histories, fields: Sequence[str]) -> Figure | None:
    """One small axes per field, because their scales differ; runs overlaid in each."""
    present = [f for f in fields if any(len(series(r, f)[0]) for r in histories.values())]
    if not present:
        return None
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    for number, field in enumerate(present, start=1):
        axes = figure.add_subplot(1, len(present), number)
        axes.set_title(field, fontsize="small")
        axes.grid(alpha=0.3)
        for name, records in histories.items():
            _draw(axes, series(records, field), name)
        if number == 1:
            axes.legend(fontsize="small")
    return figure


def _quantiles(histories: Histories) -> Figure | None:
    figure, axes = _axes("return")
    for name, records in histories.items():
        x, middle = series(records, "recent_return_p50")
        _draw(axes, (x, middle), f"{name} median")
        if not len(x):
            continue
        colour = axes.lines[-1].get_color()
        _, high = series(records, "recent_return_p90")
        if len(high) == len(x):
            axes.fill_between(
                x, middle, high, color=colour, alpha=0.2, label=f"{name} to the 90th percentile"
            )
        _draw(
            axes, series(records, "recent_return_p99"), f"{name} 99th percentile", color=colour, linestyle=":"
        )
    return _finish(figure, axes)


def _clear_rate_per_stage(histories: Histories) -> Figure | None:
    figure, axes = _axes("share of recent episodes cleared")
    for name, records in histories.items():
        stages = sorted({stage for record in records for stage in _rates(record)})
        for stage in stages:

            def rate(record: Record, stage: str = stage) -> Any:
                return _rates(record).get(stage)

            _draw(axes, series(records, rate), f"{name} {stage}" if len(histories) > 1 else stage)
    axes.set_ylim(-0.02, 1.02)
    return _finish(figure, axes)


def _rates(record: Record) -> dict[str, Any]:
    rates = record.get("clear_rate")
    return rates if isinstance(rates, dict) else {}


def _time_split(histories: Histories) -> Figure | None:
    figure, axes = _axes("share of wall time")
    for name, records in histories.items():
        _draw(axes, series(records, "collect_share"), f"{name} collecting")
        colour = axes.lines[-1].get_color() if axes.lines else None
        _draw(axes, series(records, "learn_share"), f"{name} learning", linestyle="--", color=colour)
    axes.set_ylim(bottom=0)
    return _finish(figure, axes)
