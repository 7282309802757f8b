"""An episode as a film: every frame the console draws, with what the policy thinks beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpzone.agents.agent import Agent
from warpzone.envs.actions import action_names
from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.envs.replays import Replay, playing
from warpzone.watch.overlay import with_panel
from warpzone.watch.video import NES_FPS, write_video

Frame = NDArray[np.uint8]
MOST_FRAMES = 60 * 400
"""The game's clock ends every episode before this."""


class FilmStopped(Exception):
    """A stop was asked for before the episode was over; nothing is left of the film."""


@dataclass
class Film:
    """What was recorded."""

    path: Path | None = None
    cleared: bool = False
    x_max: int = 0
    decisions: int = 0
    frames: int = field(default=0)


def episode_frames(
    agent: Agent,
    view: ViewConfig,
    stage: str,
    film: Film,
    *,
    greedy: bool,
    seed: int,
    overlay: bool,
    max_frames: int,
    rom: str = "",
) -> Iterator[Frame]:
    """Frames of one episode at 60 a second. The policy still decides once every `frame_skip` of them."""
    envs = make_envs(
        view, 1, [stage], threads=1, seed=seed, frame_skip=1, frame_stack=1, autoreset_mode="disabled",
        stall_limit=view.stall_limit * view.frame_skip, step_limit=0, rom=rom or None,
    )  # fmt: skip
    names = action_names(view.action_type)
    try:
        agent.begin(1, seed, greedy=greedy)
        picture, _ = envs.reset(seed=seed)
        stack = deque([picture[0].copy()] * view.frame_stack, maxlen=view.frame_stack)
        start = np.ones(1, np.bool_)
        over = False
        while not over and film.frames < max_frames:
            actions, probabilities, values = agent.act(np.concatenate(list(stack))[None], start)
            start = np.zeros(1, np.bool_)
            film.decisions += 1
            for _ in range(view.frame_skip):
                picture, _, terminated, truncated, info = envs.step(actions)
                screen = envs.screen(0)
                film.frames += 1
                film.x_max = int(info["x_max"][0])
                film.cleared = bool(info["flag_get"][0])
                if overlay:
                    screen = with_panel(
                        screen, probabilities=probabilities[0].tolist(), action_names=names, chosen=int(actions[0]),
                        values={"value": float(values[0]), "x": str(film.x_max), "stage": stage},
                    )  # fmt: skip
                yield screen
                over = bool(terminated[0] or truncated[0])
                if over:
                    break
            stack.append(picture[0].copy())
    finally:
        envs.close()


def record_episode(
    agent: Agent,
    stage: str,
    path: Path,
    *,
    view: ViewConfig | None = None,
    greedy: bool = False,
    seed: int = 0,
    overlay: bool = False,
    scale: int = 2,
    max_frames: int = MOST_FRAMES,
    rom: str = "",
    should_stop: Callable[[], bool] = lambda: False,
) -> Film:
    """Record one episode to an MP4 or GIF. Raises FilmStopped once `should_stop` comes true."""
    film = Film()
    frames = episode_frames(
        agent,
        view or agent.view,
        stage,
        film,
        greedy=greedy,
        seed=seed,
        overlay=overlay,
        max_frames=max_frames,
        rom=rom,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    film.path = write_video(_until(should_stop, frames), path, scale=scale)
    return film


def _until(should_stop: Callable[[], bool], frames: Iterator[Frame]) -> Iterator[Frame]:
    for frame in frames:
        if should_stop():
            raise FilmStopped
        yield frame


def record_best(
    agent: Agent,
    stage: str,
    path: Path,
    *,
    attempts: int = 8,
    seed: int = 0,
    overlay: bool = True,
    scale: int = 2,
    rom: str = "",
) -> Film:
    """Record an episode that clears the stage, if one of the first attempts does; else the one that got furthest."""
    best_seed, best = seed, -1
    for attempt in range(attempts):
        film = Film()
        for _ in episode_frames(
            agent,
            agent.view,
            stage,
            film,
            greedy=False,
            seed=seed + attempt,
            overlay=False,
            max_frames=MOST_FRAMES,
            rom=rom,
        ):
            pass
        if film.x_max > best:
            best, best_seed = film.x_max, seed + attempt
        if film.cleared:
            best_seed = seed + attempt
            break
    return record_episode(
        agent, stage, path, greedy=False, seed=best_seed, overlay=overlay, scale=scale, rom=rom
    )


def record_replay(replay: Replay, rom: bytes, path: Path, *, scale: int = 2) -> Film:
    """Record what a person played, at the speed of the console. A replay that leads elsewhere now is an error."""
    film = Film()

    def frames() -> Iterator[Frame]:
        for env in playing(replay, rom):
            film.x_max, film.cleared = env.telemetry["x_max"], bool(env.telemetry["flag_get"])
            yield env.screen()

    path.parent.mkdir(parents=True, exist_ok=True)
    film.path = write_video(frames(), path, fps=50 if replay.region == "pal" else NES_FPS, scale=scale)
    film.frames = len(replay.buttons)
    return film
