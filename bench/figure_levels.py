"""The figures on generated levels and on agents that play what they have never seen (bench/generalisation.py)."""

from __future__ import annotations

from itertools import groupby
from statistics import mean
from typing import Any

from figure_sources import Figures, load, percent, ratio, table
from warpzone.agents.intervals import wilson

BENCHMARK, LONGER = "generalisation.json", "generalisation-longer.json"
AGENT, NATURE = "agents/thirty-two.safetensors", "endless, nature network"
LAST = 5
"""Of the fifty points of a learning curve, those whose mean is the clear rate on the training levels at its end."""


def generalisation() -> Figures:
    """The 32-stage agent and the one trained on generated levels, where they have never been."""

    def known() -> Any:
        return next(point for point in load(BENCHMARK)["points"] if point["point"] == AGENT)

    def played(name: str = "endless") -> Any:
        return next(point for point in load(LONGER)["points"] if point["point"] == name)

    def often() -> list[str]:
        return [row["stage"] for row in results(played(), "originals") if row["clear_rate"] >= 0.2]

    return {
        "32-unseen": lambda: percent(rate([known()], "unseen")),
        "32-lost-levels": lambda: percent(rate([known()], "lost_levels"), 0),
        "levels-unseen": lambda: percent(rate([played()], "unseen")),
        "levels-unseen-low": lambda: f"{100 * interval([played()])[0]:.0f}",
        "levels-unseen-high": lambda: f"{100 * interval([played()])[1]:.0f}",
        "levels-unseen-sticky": lambda: percent(rate([played()], "unseen", "sticky")),
        "levels-stages": lambda: str(len(often())),
        "levels-stages-names": lambda: ", ".join(often()),
        "levels-lost": lambda: str(sum(row["clears"] > 0 for row in results(played(), "lost_levels"))),
        "levels-trained-decisions": lambda: f"{played()['decisions'] / 1e6:.0f}",
        **{
            f"unseen-{name}": lambda name=name: percent(rate(seeds(name), "unseen"))  # type: ignore[misc]
            for name in ("16", "1024", "endless")
        },
        "unseen-residual": lambda: percent(rate(seeds("endless, residual network"), "unseen")),
        "unseen-pooling": lambda: percent(rate(seeds("endless, residual network with pooling"), "unseen")),
        "nature-longer-unseen": lambda: percent(rate([played(NATURE)], "unseen")),
        "nature-longer-decisions": lambda: f"{played(NATURE)['decisions'] / 1e6:.0f}",
        "generalisation-table": benchmark_table,
        "generalisation-settings-table": settings_table,
        "generalisation-longer-table": lambda: points_table(load(LONGER)["points"]),
    }


def seeds(name: str) -> list[Any]:
    """The trainings of a point of the benchmark."""
    return [point for point in load(BENCHMARK)["points"] if point["point"] == name]


def results(point: Any, where: str, mode: str = "sampled") -> Any:
    return point[where]["results"][mode]


def rate(points: list[Any], where: str, mode: str = "sampled") -> float:
    """The clear rate over all episodes of all seeds."""
    rows = [row for point in points for row in results(point, where, mode)]
    return float(sum(row["clears"] for row in rows) / sum(row["episodes"] for row in rows))


def interval(points: list[Any]) -> tuple[float, float]:
    rows = [row for point in points for row in results(point, "unseen")]
    return wilson(sum(row["clears"] for row in rows), sum(row["episodes"] for row in rows))


def training_rate(point: Any) -> float:
    """The clear rate of the last training episodes, over all that was trained on."""
    return mean(mean(one["clear_rate"].values()) for one in point["curve"][-LAST:])


def benchmark_table() -> str:
    """The benchmark's own points."""
    return points_table([point for point in load(BENCHMARK)["points"] if "," not in point["point"]])


def settings_table() -> str:
    """What else was tried, each below the same training without it."""
    points = load(BENCHMARK)["points"]
    tried = {point["point"].partition(",")[0] for point in points if "," in point["point"]}
    shown = [point for point in points if point["point"].partition(",")[0] in tried]
    return points_table(sorted(shown, key=lambda point: point["point"].partition(",")[0]))


def points_table(points: list[Any]) -> str:
    """A row for each setting, with its seeds side by side; the interval is of all their episodes together."""
    rows = []
    for name, group in groupby(points, lambda point: point["point"]):
        of = list(group)
        low, high = interval(of)
        cells = zip(*(cells_of(point) for point in of), strict=True)
        decisions, training, unseen, sticky, stages, lost = (", ".join(texts) for texts in cells)
        if name in ("originals", AGENT):
            stages = "trained on"
        unseen += f" ({100 * low:.1f} to {100 * high:.1f})"
        rows.append("| " + " | ".join([name, decisions, training, unseen, sticky, stages, lost]) + " |")
    columns = ["million decisions", "training", "unseen", "sticky", "of 32 stages", "of 16 Lost Levels"]
    return table("| " + " | ".join(["trained on", *columns]) + " |", rows, ", ".join(columns))


def cells_of(point: Any) -> list[str]:
    """Of one training: decisions, the clear rates, stages cleared in 20 % of the episodes, Lost Levels cleared once."""
    learned = "curve" in point
    return [
        f"{point['decisions'] / 1e6:.1f}" if learned else "",
        percent(training_rate(point), 0) if learned else "",
        percent(rate([point], "unseen")),
        percent(rate([point], "unseen", "sticky")),
        str(sum(row["clear_rate"] >= 0.2 for row in results(point, "originals"))),
        str(sum(row["clears"] > 0 for row in results(point, "lost_levels"))),
    ]


def levels() -> Figures:
    """What generated levels are like (`bench/levels.py`), and that areas play as before (`bench/level_movie.py`)."""

    def soak() -> Any:
        return load("levels.json")["soak"]

    def solvable() -> Any:
        return load("levels.json")["solvable"]

    return {
        **ratio("levels-speed", lambda: load("levels.json")["speed"], ".2f"),
        "levels-solved": lambda: f"{solvable()['solved']} of {solvable()['levels']}",
        "levels-solved-low": lambda: percent(solvable()["low"], 0),
        "levels-solved-high": lambda: percent(solvable()["high"], 0),
        "levels-played": lambda: f"{soak()['seeds']:,}",
        "levels-decisions": lambda: f"{soak()['decisions']:,}",
        "levels-deaths": lambda: f"{soak()['ends']['death']:,}",
        "levels-blocks": lambda: f"{soak()['blocks']:,}",
        "levels-strange": lambda: str(len(soak()["levels_with_strange_blocks"])),
        "level-areas": lambda: str(load("level_movie.json")["areas"]),
        "level-movie-frames": lambda: f"{load('level_movie.json')['movie_frames']:,}",
        "level-areas-visited": lambda: str(
            sum(count > 0 for count in load("level_movie.json")["frames_in_area"].values())
        ),
    }
