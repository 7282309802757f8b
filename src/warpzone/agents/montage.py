"""Many stages in one video: a grid of small screens, each with the agent's best episode of a few tries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from warpzone.agents.evaluation import OnProgress
from warpzone.agents.play import Take, best_take
from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.envs.stages import GAME, parse_stage
from warpzone.envs.vector import MarioVectorEnv
from warpzone.watch.overlay import draw_text
from warpzone.watch.video import NES_FPS, Frame, write_video

if TYPE_CHECKING:
    from warpzone.agents.agent import Agent

TILE_HEIGHT, TILE_WIDTH = 120, 128
LABEL_HEIGHT = 14
LINGER_S = 3
"""Seconds that the last frame stays."""
_BACKGROUND, _CLEARED, _FAILED = (16, 16, 24), (30, 110, 50), (120, 40, 40)


def record_montage(
    agent: Agent,
    stages: Sequence[str],
    path: Path,
    *,
    tries: int = 8,
    seed: int = 0,
    max_decisions: int = 0,
    threads: int = 0,
    rom: str = "",
    on_search: OnProgress | None = None,
    on_frame: OnProgress | None = None,
) -> list[Take]:
    """Find an episode of every stage and record them side by side; returns the episodes shown."""
    takes = []
    for stage in stages:
        take = best_take(
            agent, agent.view, stage, tries=tries, seed=seed, max_decisions=max_decisions, threads=threads,
            rom=rom or None,
        )  # fmt: skip
        takes.append(take)
        if on_search:
            on_search(len(takes), len(stages))
    frames = montage_frames(agent.view, takes, threads=threads, rom=rom, on_frame=on_frame)
    write_video(frames, path, fps=NES_FPS // 2, scale=1)
    return takes


def montage_frames(
    view: ViewConfig,
    takes: Sequence[Take],
    *,
    threads: int = 0,
    rom: str = "",
    on_frame: OnProgress | None = None,
) -> Iterator[Frame]:
    """Every other frame of the episodes, side by side; each freezes when its episode ends."""
    n = len(takes)
    places, shape = _grid([take.stage for take in takes])
    canvas = np.empty((shape[0] * (TILE_HEIGHT + LABEL_HEIGHT), shape[1] * TILE_WIDTH, 3), np.uint8)
    canvas[:] = _BACKGROUND
    length = max(len(take.actions) for take in takes)
    plain = view.fixed()
    envs = make_envs(
        plain, n, [take.stage for take in takes], threads=threads, frame_skip=1, frame_stack=1,
        stall_limit=0, step_limit=0, autoreset_mode="next_step", rom=rom or None,
    )  # fmt: skip
    try:
        _begin(envs, takes)
        playing = np.ones(n, np.bool_)
        for i, take in enumerate(takes):
            _show(canvas, places[i], envs.screen(i))
            _label(canvas, places[i], take.stage, _BACKGROUND)
        for t in range(length):
            actions = np.array([take.actions[t] if t < len(take.actions) else 0 for take in takes])
            for held in range(view.frame_skip):
                _, _, terminated, truncated, _ = envs.step(actions)
                over = terminated | truncated
                if held + 1 == view.frame_skip:
                    over |= np.array([t + 1 >= len(take.actions) for take in takes])
                draws = (t * view.frame_skip + held) % 2 == 1
                for i in np.flatnonzero(playing & (over | draws)).tolist():
                    _show(canvas, places[i], envs.screen(i))
                for i in np.flatnonzero(playing & over).tolist():
                    take = takes[i]
                    verdict = "CLEARED" if take.cleared else "LOST"
                    _label(
                        canvas, places[i], f"{take.stage} {verdict}", _CLEARED if take.cleared else _FAILED
                    )
                playing &= ~over
                if draws:
                    yield canvas
            if on_frame:
                on_frame(t + 1, length)
        for _ in range(LINGER_S * NES_FPS // 2):
            yield canvas
    finally:
        envs.close()


def _begin(envs: MarioVectorEnv, takes: Sequence[Take]) -> None:
    """Let environment i play the stage of take i."""
    envs.reset(seed=0)
    for i, take in enumerate(takes):
        envs.set_stage(take.stage)
        envs.reset(options={"reset_mask": np.arange(len(takes)) == i})


def _grid(stages: Sequence[str]) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """(row, column) of every stage and the size of the grid: worlds side by side if they are whole, else in lines."""
    pairs = [parse_stage(stage) for stage in stages]
    worlds, numbers = sorted({w for w, _ in pairs}), sorted({s for _, s in pairs})
    if GAME not in stages and len(stages) == len(worlds) * len(numbers):
        places = [(numbers.index(s), worlds.index(w)) for w, s in pairs]
        return places, (len(numbers), len(worlds))
    columns = math.ceil(math.sqrt(2 * len(stages)))
    places = [divmod(i, columns) for i in range(len(stages))]
    return places, (places[-1][0] + 1, min(columns, len(stages)))


def _show(canvas: Frame, place: tuple[int, int], screen: Frame) -> None:
    top, left = place[0] * (TILE_HEIGHT + LABEL_HEIGHT) + LABEL_HEIGHT, place[1] * TILE_WIDTH
    wide = screen.reshape(TILE_HEIGHT, 2, TILE_WIDTH, 2, 3).astype(np.uint16)
    small = wide.sum(axis=(1, 3), dtype=np.uint16) // 4
    canvas[top : top + TILE_HEIGHT, left : left + TILE_WIDTH] = small


def _label(canvas: Frame, place: tuple[int, int], text: str, colour: tuple[int, int, int]) -> None:
    top, left = place[0] * (TILE_HEIGHT + LABEL_HEIGHT), place[1] * TILE_WIDTH
    label = np.empty((LABEL_HEIGHT, TILE_WIDTH, 3), np.uint8)
    label[:] = colour
    draw_text(label, text, 3, 4)
    canvas[top : top + LABEL_HEIGHT, left : left + TILE_WIDTH] = label
