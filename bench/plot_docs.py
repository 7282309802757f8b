"""Draws the learning curves of the documentation again from the files in the repository.

python bench/plot_docs.py [NAME ...]

`PLOTS` says for each picture in docs/media what its curves are called and which files they come from. Several files
of one curve are seeds: the line is their mean, the band goes from the lowest to the highest.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
MEDIA = ROOT / "docs" / "media"
STAGES = [f"{world}-{stage}" for world in range(1, 9) for stage in range(1, 5)]
Curve = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Plot:
    title: str
    curves: dict[str, list[str]]
    """Label -> files in docs/media/curves, or `FILE.json:RUN` in docs/data; RUN is a name, or `NAME#SEED`."""
    seconds: bool = False
    """Over seconds of training instead of million decisions."""
    top: float = 1.0
    """The highest rate that is shown."""
    board: int = 0
    """So many panels per row, one for each curve, instead of all curves in one."""


def seeds(*names: str) -> list[str]:
    return [f"recipe-cpu.json:{name}" for name in names]


def points(name: str) -> list[str]:
    return [f"generalisation.json:{name}#{seed}" for seed in (0, 1)]


LEVELS = {**{f"{n:,} levels": str(n) for n in (16, 64, 256, 1024)}, "endless": "endless"}
SETTINGS = ("augmentation", "weight decay", "random frame skip", "level replay")
PLOTS = {
    "cpu-1-1": Plot(
        "Stage 1-1 on two CPU cores, default settings",
        {"mean of three seeds": [f"learning-cpu.json:{seed}" for seed in range(3)]},
        seconds=True,
    ),
    "h200-1-1": Plot(
        "Stage 1-1 on one H200",
        {
            "Nature network, three seeds": [f"h200-1-1-seed{seed}" for seed in range(3)],
            "strided residual network, one seed": ["h200-1-1-strided"],
        },
        seconds=True,
    ),
    "cpu-recipe": Plot(
        "Stage 1-1 on two CPU cores, three seeds each",
        {
            "preset until then": seeds("C-1-1-s0", "C-1-1-s1", "C-1-1-s2"),
            "A: discount 0.97, death penalty 25": seeds("N2-1-1-s0", "N2-1-1-s1", "N2-1-1-s2"),
            "B: discount 0.98, death penalty 10": seeds("N1-1-1-s0", "N1-1-1-s1", "N1-1-1-s2"),
        },
    ),
    "cpu-1-3-horizon": Plot(
        "Stage 1-3 with four discounts, one CPU core, one seed",
        {f"discount 0.{n}": [f"cpu-1-3-horizon-gamma-0-{n}"] for n in (90, 95, 97, 98)},
    ),
    "cpu-3-4-recipe": Plot(
        "Stage 3-4: algorithm and gradient clipping, one seed",
        {
            "PPO, clipped at 5": ["cpu-3-4-recipe-ppo-gradients-cut-at-5"],
            "PPO, clipped at 0.5": ["cpu-3-4-recipe-gradients-cut-at-0-5"],
            "APPO, clipped at 0.5": ["cpu-3-4-recipe-appo-overlapped"],
        },
    ),
    "cpu-4-3-dying": Plot(
        "Stage 4-3 with two death penalties, one seed",
        {f"death penalty {n}": [f"cpu-4-3-dying-dying-costs-{n}"] for n in (10, 50)},
    ),
    "cpu-4-4-memory": Plot(
        "Maze 4-4 with and without memory, one seed",
        {"no memory": ["cpu-4-4-memory-no-memory"], "GRU": ["cpu-4-4-memory-gru"]},
    ),
    "cpu-8-4": Plot(
        "Maze 8-4 from its true start, last two parts",
        {
            "four of five episodes start at the frontier": ["cpu-8-4-four-of-five-starts-at-the-frontier"],
            "then all from the true start": ["cpu-8-4-then-from-the-true-start-alone"],
        },
    ),
    "cpu-end": Plot(
        "Completion reward of 50 or 300, one seed",
        {f"{s}, reward {n}": [f"cpu-end-{s}-end-pays-{n}"] for s in ("2-4", "3-4", "5-4") for n in (50, 300)},
    ),
    "cpu-five-stages": Plot(
        "Five stages at once, one CPU core, seed 0",
        {
            "uniform sampling": ["cpu-five-stages-drawn-evenly"],
            "curriculum by progress": ["cpu-five-stages-curriculum-progress"],
            "advantages normalised per stage": ["cpu-five-stages-advantages-by-stage"],
            "values normalised per stage": ["cpu-five-stages-values-by-stage"],
        },
    ),
    "cpu-four-stages": Plot(
        "Four stages at once, one CPU core, one seed",
        {
            "curriculum and advantages per stage": ["cpu-four-stages-all-of-it"],
            "uniform sampling": ["cpu-four-stages-stages-drawn-evenly"],
            "advantages normalised over all": ["cpu-four-stages-advantages-normalised-over-all"],
            "with restarts from the archive": ["cpu-four-stages-with-the-archive"],
        },
    ),
    "cpu-mazes": Plot(
        "Mazes from their true start, one CPU core, one seed",
        {
            "4-4": ["cpu-mazes-4-4"],
            "7-4, first part": ["cpu-mazes-7-4-first-part"],
            "7-4, second part": ["cpu-mazes-7-4-second-part"],
        },
    ),
    "cpu-teachers": Plot(
        "One policy distilled for 4-4, 7-4 and 8-4, one seed",
        {
            "weight 20, temperature 0.5": ["cpu-teachers-20-temperature-0-5"],
            "weight 20 to 1, temperature 0.5": ["cpu-teachers-20-to-1-temperature-0-5"],
            "weight 5 to 2, temperature 0.5": ["cpu-teachers-5-to-2-temperature-0-5"],
            "weight 5 to 2, temperature 1": ["cpu-teachers-5-to-2-temperature-1"],
            "weight 1 to 0.1, temperature 1": ["cpu-teachers-weight-1-to-0-1-temperature-1"],
        },
    ),
    "h200-32-stages": Plot(
        "One policy for 32 stages from rewards alone, one H200",
        {"first part": ["h200-32-stages-first"], "second part, more actions": ["h200-32-stages-second"]},
    ),
    "h200-teachers": Plot(
        "One policy for 32 stages, one H200, one seed",
        {
            "distilled from 27 agents": ["h200-teachers-with-teachers"],
            "rewards alone, first part": ["h200-32-stages-first"],
            "rewards alone, second part": ["h200-32-stages-second"],
        },
    ),
    "h200-levels-trained": Plot(
        "Clear rate on the training levels, two seeds each",
        {label: points(name) for label, name in LEVELS.items()},
        top=0.7,
    ),
    "h200-levels-settings": Plot(
        "64 training levels: clear rate on them, two seeds each",
        {
            "the benchmark's settings": points("64"),
            **{name: points(f"64, {name}") for name in SETTINGS},
        },
        top=0.7,
    ),
    "h200-levels-networks": Plot(
        "Endless levels: clear rate on the training levels, two seeds each",
        {
            "Nature network": points("endless"),
            "residual network": points("endless, residual network"),
            "residual network with pooling": points("endless, residual network with pooling"),
        },
        top=0.7,
    ),
    "h200-specialists": Plot(
        "One agent per stage on one H200: clear rate over million decisions",
        {stage: [f"h200-specialists-{stage}"] for stage in STAGES},
        board=8,
    ),
    "h200-specialists-hard": Plot(
        "Hard stages on one H200, five at a time: clear rate over million decisions",
        {
            s: [f"h200-specialists-hard-{s}"]
            for s in ("1-3", "2-2", "5-3", "5-4", "6-2", "7-2", "8-1", "8-2", "8-3")
        },
        board=3,
    ),
}


def source(name: str) -> Path:
    file = name.partition(":")[0]
    return ROOT / "docs" / "data" / file if ".json" in name else MEDIA / "curves" / f"{file}.csv"


def read(name: str, seconds: bool) -> Curve:
    """Seconds or million decisions, and the clear rate of the last 100 episodes."""
    if "#" in name:
        wanted, _, seed = name.partition(":")[2].partition("#")
        found = json.loads(source(name).read_text())["points"]
        point = next(one for one in found if one["point"] == wanted and one["seed"] == int(seed))
        rows = [
            (0.0, one["global_step"] / 1e6, float(np.mean([*one["clear_rate"].values()])))
            for one in point["curve"]
        ]
    elif ".json" in name:
        runs = json.loads(source(name).read_text())["runs"]
        wanted = name.partition(":")[2]
        run = next(run for run in runs if wanted in (run.get("name"), str(run.get("seed"))))
        rows = [(s, decisions / 1e6, rate) for s, decisions, rate in run["curve"]]
    else:
        with source(name).open() as file:
            rows = [
                (float(r["elapsed_s"]), float(r["global_step"]) / 1e6, float(r["clear_rate_mean"] or 0))
                for r in csv.DictReader(file)
            ]
    return [row[0 if seconds else 1] for row in rows], [row[2] for row in rows]


def together(curves: list[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """Rates [seeds, points] on one axis; a run that has ended keeps its last rate."""
    grid = np.linspace(0, max(x[-1] for x, _ in curves), 200)
    return grid, np.array([np.interp(grid, x, y) for x, y in curves])


def draw(name: str, out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    plot = PLOTS[name]
    axis_name = "seconds of training" if plot.seconds else "million decisions"
    # Shown at half size in the pages of a narrow screen: letters have to be large.
    mpl.rcParams.update({"font.size": 15, "axes.titlesize": 15})
    if plot.board:
        rows = -(-len(plot.curves) // plot.board)
        figure, axes = plt.subplots(
            rows, plot.board, figsize=(11, 2 * rows + 0.6), sharey=True, constrained_layout=True
        )
        for axis, (label, names) in zip(axes.flatten(), plot.curves.items(), strict=True):
            axis.plot(*read(names[0], plot.seconds))
            axis.set(ylim=(0, 1), yticks=[0, 0.5, 1], title=label)
            axis.set_xlim(left=0)
            axis.locator_params(axis="x", nbins=2)
            axis.grid(alpha=0.3)
    else:
        figure, axis = plt.subplots(figsize=(9.5, 5), constrained_layout=True)
        for label, names in plot.curves.items():
            curves = [read(one, plot.seconds) for one in names]
            grid, rates = together(curves)
            x, y = curves[0] if len(curves) == 1 else (grid, rates.mean(0))
            (line,) = axis.plot(x, y, linewidth=2, label=label)
            if len(curves) > 1:
                axis.fill_between(
                    grid, rates.min(0), rates.max(0), color=line.get_color(), alpha=0.2, linewidth=0
                )
        axis.set(ylim=(0, plot.top + 0.01), xlabel=axis_name, ylabel="clear rate, last 100 episodes")
        axis.set_xlim(left=0)
        axis.grid(alpha=0.3)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    figure.suptitle(plot.title)
    figure.savefig(out, dpi=90, bbox_inches="tight")
    plt.close(figure)
    Image.open(out).convert("RGB").quantize(48).save(out, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="all if none is named: " + ", ".join(PLOTS))
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in PLOTS]:
        parser.error(f"no plot is named {unknown[0]!r}: choose from {', '.join(PLOTS)}")
    for wanted in names or PLOTS:
        draw(wanted, MEDIA / f"{wanted}.png")
