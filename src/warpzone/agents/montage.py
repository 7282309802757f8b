"""Many stages in one film: a grid of small screens, each with the agent's best episode of a few tries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpzone.agents.agent import Agent, evaluation_view
from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.envs.stages import GAME, parse_stage
from warpzone.envs.vector import MarioVectorEnv
from warpzone.watch.overlay import draw_text
from warpzone.watch.video import NES_FPS, write_video

Frame = NDArray[np.uint8]
Told = Callable[[int, int], None]
"""Called with how much is done, and of how much."""

TILE_HEIGHT, TILE_WIDTH = 120, 128
LABEL_HEIGHT = 14
LINGER_S = 3
"""How long the film stands still after the last episode."""
_BACKGROUND, _CLEARED, _FAILED = (16, 16, 24), (30, 110, 50), (120, 40, 40)


@dataclass
class Take:
    """An episode to film: what the agent pressed, and what came of it."""

    stage: str
    actions: list[int]
    cleared: bool
    progress: int


def best_take(
    agent: Agent,
    stage: str,
    *,
    tries: int,
    seed: int,
    max_decisions: int = 0,
    threads: int = 0,
    rom: str = "",
) -> Take:
    """The first of `tries` sampled episodes to clear the stage, else the one that got furthest."""
    view = evaluation_view(agent.view, noop_max=0, sticky=0.0)
    envs = make_envs(
        view, tries, [stage], threads=threads, seed=seed, autoreset_mode="same_step", rom=rom or None
    )
    try:
        agent.begin(tries, seed, greedy=False)
        observations, _ = envs.reset(seed=seed)
        starts = np.ones(tries, np.bool_)
        playing = np.ones(tries, np.bool_)
        best = Take(stage, [], False, -1)
        taken: list[NDArray[np.int64]] = []
        while playing.any() and not best.cleared and (not max_decisions or len(taken) < max_decisions):
            actions, _, _ = agent.act(observations, starts)
            taken.append(actions)
            observations, _, terminated, truncated, info = envs.step(actions)
            starts = terminated | truncated
            final = info.get("final_info", info)
            for i in np.flatnonzero(playing & starts).tolist():
                cleared, progress = bool(final["flag_get"][i]), int(final["progress"][i])
                if cleared or (progress > best.progress and not best.cleared):
                    best = Take(stage, [int(a[i]) for a in taken], cleared, progress)
            playing &= ~starts
        if playing.any() and not best.cleared:
            # Cut short: whoever is furthest now.
            i = int(np.where(playing, info["progress"], -1).argmax())
            if info["progress"][i] > best.progress:
                best = Take(stage, [int(a[i]) for a in taken], False, int(info["progress"][i]))
        return best
    finally:
        envs.close()


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
    on_search: Told | None = None,
    on_film: Told | None = None,
) -> list[Take]:
    """Look for an episode of every stage and film them side by side; gives what was filmed."""
    takes = []
    for stage in stages:
        takes.append(
            best_take(
                agent, stage, tries=tries, seed=seed, max_decisions=max_decisions, threads=threads, rom=rom
            )
        )
        if on_search:
            on_search(len(takes), len(stages))
    frames = montage_frames(agent.view, takes, threads=threads, rom=rom, on_film=on_film)
    write_video(frames, path, fps=NES_FPS // 2, scale=1)
    return takes


def montage_frames(
    view: ViewConfig, takes: Sequence[Take], *, threads: int = 0, rom: str = "", on_film: Told | None = None
) -> Iterator[Frame]:
    """Every other frame of the episodes, all at once; each stands still when it is over."""
    n = len(takes)
    places, shape = _grid([take.stage for take in takes])
    canvas = np.empty((shape[0] * (TILE_HEIGHT + LABEL_HEIGHT), shape[1] * TILE_WIDTH, 3), np.uint8)
    canvas[:] = _BACKGROUND
    length = max(len(take.actions) for take in takes)
    plain = evaluation_view(view, noop_max=0, sticky=0.0)
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
                draws = held % 2 == 1
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
            if on_film:
                on_film(t + 1, length)
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
    small = np.empty((LABEL_HEIGHT // 2, TILE_WIDTH // 2, 3), np.uint8)
    small[:] = colour
    draw_text(small, text, 1, 1)
    canvas[top : top + LABEL_HEIGHT, left : left + TILE_WIDTH] = small.repeat(2, axis=0).repeat(2, axis=1)
