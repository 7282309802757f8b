"""The results of an evaluation as Markdown and as an image: a grid with a cell for every stage."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from warpzone.agents.evaluation import StageResult
from warpzone.envs.stages import GAME, parse_stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Results = Mapping[str, Sequence[StageResult]]
"""Evaluation mode -> the result of every stage."""

_FIELD = 0.94


def mean_rate(rows: Sequence[StageResult]) -> float:
    return sum(r.clear_rate for r in rows) / len(rows)


def as_markdown(results: Results, title: str) -> str:
    """A table with a row for every stage and a column for every mode."""
    modes = list(results)
    by_stage = {mode: {r.stage: r for r in rows} for mode, rows in results.items()}
    stages = [r.stage for r in next(iter(results.values()))]
    lines = [f"# {title}", "", f"| stage | {' | '.join(modes)} | mean x, {modes[0]} |"]
    lines.append("|---|" + "---:|" * (len(modes) + 1))
    for stage in stages:
        rates = " | ".join(f"{by_stage[mode][stage].clear_rate:.0%}" for mode in modes)
        lines.append(f"| {stage} | {rates} | {by_stage[modes[0]][stage].mean_x:,.0f} |")
    means = " | ".join(f"**{mean_rate(results[mode]):.1%}**" for mode in modes)
    lines.append(f"| **mean** | {means} | |")
    for bar in (0.95, 0.8):
        counts = " | ".join(str(sum(r.clear_rate >= bar for r in results[mode])) for mode in modes)
        lines.append(f"| stages at {bar:.0%} or more | {counts} | |")
    return "\n".join(lines) + "\n"


def as_png(results: Results, title: str) -> bytes:
    """A grid for every mode: a column for each world, a row for each stage, green where it is cleared."""
    from matplotlib.figure import Figure

    places = {_place(r.stage) for rows in results.values() for r in rows}
    worlds, numbers = sorted({world for world, _ in places}), sorted({number for _, number in places})
    width = max(4.5, 0.85 * len(worlds))
    height = (0.85 * len(numbers) + 0.3) * len(results) + 0.8
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(textwrap.fill(title, round(12 * width)), fontsize=10)
    boards = figure.subplots(len(results), 1, squeeze=False)[:, 0]
    for board, (mode, rows) in zip(boards, results.items(), strict=True):
        _draw(board, rows, worlds, numbers)
        board.set_title(f"{mode}: {mean_rate(rows):.1%} on average", fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120)
    return out.getvalue()


def _place(stage: str) -> tuple[int, int]:
    return (0, 1) if stage == GAME or "@" in stage else parse_stage(stage)


def _draw(board: Axes, rows: Sequence[StageResult], worlds: list[int], numbers: list[int]) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colours = colormaps["RdYlGn"]
    for r in rows:
        world, number = _place(r.stage)
        at = worlds.index(world), len(numbers) - 1 - numbers.index(number)
        board.add_patch(Rectangle(at, _FIELD, _FIELD, color=colours(0.15 + 0.7 * r.clear_rate)))
        middle = at[0] + _FIELD / 2, at[1] + _FIELD / 2
        board.text(*middle, f"{r.stage}\n{r.clear_rate:.0%}", ha="center", va="center", fontsize=9)
    board.set_xlim(0, len(worlds))
    board.set_ylim(0, len(numbers))
    board.set_aspect("equal")
    board.set_axis_off()
