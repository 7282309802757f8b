"""Curves for docs/research: reads the metrics of runs, writes one small CSV each and one plot of all.

python bench/plot_curves.py --out docs/media/h200-1-1.png --title "1-1 on one H200" seed0=runs/a seed1=runs/b
python bench/plot_curves.py --board 4 --out docs/media/board.png 1-1=runs/stage-1-1 1-2=runs/stage-1-2  # a panel each
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

COLUMNS = ("elapsed_s", "global_step", "clear_rate_mean", "avg_return", "env_steps_per_sec")


def read(path: Path) -> list[dict[str, Any]]:
    """Metrics of a run's folder, of a metrics.jsonl, or of a CSV that this script wrote."""
    if path.is_dir():
        path = path / "metrics.jsonl"
    if path.suffix == ".csv":
        with path.open() as file:
            return [{k: float(v) if v else None for k, v in row.items()} for row in csv.DictReader(file)]
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def _mean(value: Any) -> float:
    values = list(value.values()) if isinstance(value, dict) else [value or 0.0]
    return sum(values) / max(len(values), 1)


def keep(records: list[dict[str, Any]], field: str, path: Path, every_s: float) -> None:
    """One run's curve as CSV, with at most one row per so many seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = tuple(dict.fromkeys((*COLUMNS, field)))
    due = 0.0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for record in records:
            if record["elapsed_s"] >= due or record is records[-1]:
                due = record["elapsed_s"] + every_s
                writer.writerow(["" if record[c] is None else f"{_mean(record[c]):.6g}" for c in columns])


def draw_together(runs: dict[str, list[dict[str, Any]]], field: str, ylabel: str) -> Figure:
    """All curves over time and over decisions."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), constrained_layout=True)
    for label, records in runs.items():
        rates = [_mean(r[field]) for r in records]
        axes[0].plot([r["elapsed_s"] for r in records], rates, label=label)
        axes[1].plot([r["global_step"] / 1e6 for r in records], rates, label=label)
    for axis, name in zip(axes, ("seconds of training", "million decisions"), strict=True):
        axis.set_xlabel(name)
        axis.set_ylabel(ylabel)
        axis.set_ylim(0, 1)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure


def draw_board(runs: dict[str, list[dict[str, Any]]], field: str, across: int) -> Figure:
    """A panel for each curve, over million decisions."""
    rows = -(-len(runs) // across)
    figure, axes = plt.subplots(
        rows, across, figsize=(9, 1.1 * rows + 0.4), sharey=True, squeeze=False, constrained_layout=True
    )
    panels = axes.flatten().tolist()
    for axis, (label, records) in zip(panels, runs.items(), strict=False):
        axis.plot([r["global_step"] / 1e6 for r in records], [_mean(r[field]) for r in records])
        axis.set_ylim(0, 1)
        axis.set_xlim(left=0)
        axis.set_title(f"{label}, {records[-1]['elapsed_s']:.0f} s", fontsize=8, pad=2)
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.3)
    for axis in panels[len(runs) :]:
        axis.set_axis_off()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", help="LABEL=RUN")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--title", default="")
    parser.add_argument(
        "--field", default="clear_rate_mean", help="field to plot; the mean where it is per stage"
    )
    parser.add_argument("--ylabel", default="clear rate, last 100 episodes")
    parser.add_argument("--csv-dir", type=Path, default=None, help="keep each run's curve here as CSV")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between two rows of the CSV")
    parser.add_argument("--board", type=int, default=0, help="a panel for each run, this many per row")
    args = parser.parse_args()
    items = [item.partition("=") for item in args.runs]
    runs = {label: read(Path(where)) for label, _, where in items}
    if args.csv_dir is not None:
        for label, records in runs.items():
            slug = re.sub("[^a-z0-9]+", "-", label.lower())
            keep(records, args.field, args.csv_dir / f"{args.out.stem}-{slug}.csv", args.every)
    figure = (
        draw_board(runs, args.field, args.board)
        if args.board
        else draw_together(runs, args.field, args.ylabel)
    )
    figure.suptitle(args.title)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=110)


if __name__ == "__main__":
    main()
