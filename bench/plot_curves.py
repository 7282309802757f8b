"""Curves for docs/results.md: reads the metrics of runs, writes one small CSV each and one picture of all.

python bench/plot_curves.py --out docs/media/h200-1-1.png --title "1-1 on one H200" seed0=runs/a seed1=runs/b
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="LABEL=RUN")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--title", default="")
    parser.add_argument(
        "--field", default="clear_rate_mean", help="what is drawn; a mean where it is by stage"
    )
    parser.add_argument("--ylabel", default="clear rate, last 100 episodes")
    parser.add_argument("--csv-dir", type=Path, default=None, help="keep each run's curve here as CSV")
    args = parser.parse_args()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), constrained_layout=True)
    for item in args.runs:
        label, _, where = item.partition("=")
        records = read(Path(where))
        rates = [_mean(r[args.field]) for r in records]
        axes[0].plot([r["elapsed_s"] for r in records], rates, label=label)
        axes[1].plot([r["global_step"] / 1e6 for r in records], rates, label=label)
        if args.csv_dir is not None:
            args.csv_dir.mkdir(parents=True, exist_ok=True)
            slug = re.sub("[^a-z0-9]+", "-", label.lower())
            with (args.csv_dir / f"{args.out.stem}-{slug}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                columns = tuple(dict.fromkeys((*COLUMNS, args.field)))
                writer.writerow(columns)
                for r in records:
                    writer.writerow(["" if r[c] is None else f"{_mean(r[c]):.6g}" for c in columns])
    for axis, name in zip(axes, ("seconds of training", "million decisions"), strict=True):
        axis.set_xlabel(name)
        axis.set_ylabel(args.ylabel)
        axis.set_ylim(0, 1)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.suptitle(args.title)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=110)


if __name__ == "__main__":
    main()
