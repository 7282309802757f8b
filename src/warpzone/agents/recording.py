"""An episode as a video: every frame the emulator draws, with what the policy thinks beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpzone.agents.play import Player, Replayed, Step, best_take, play_frames
from warpzone.envs.actions import action_names
from warpzone.envs.config import ViewConfig
from warpzone.envs.replays import Replay, playing
from warpzone.watch.overlay import with_panel
from warpzone.watch.video import NES_FPS, Frame, write_video

if TYPE_CHECKING:
    from warpzone.agents.agent import Agent

TRIES = 8
"""Episodes of which the best one is recorded."""
MOST_FRAMES = 60 * 400
"""The game's clock ends every episode before this."""


class RecordingStopped(Exception):
    """A stop was requested before the end of the episode; no video is kept."""


@dataclass
class Video:
    """A recorded video."""

    path: Path | None = None
    cleared: bool = False
    x_max: int = 0
    decisions: int = 0
    frames: int = 0

    @property
    def verdict(self) -> str:
        return "cleared" if self.cleared else f"reached x={self.x_max}"


@dataclass(frozen=True)
class Style:
    """How a video looks."""

    overlay: bool = False
    """Show action probabilities and value beside the screen."""
    scale: int = 2
    max_frames: int = MOST_FRAMES


def episode_frames(
    agent: Player, view: ViewConfig, stage: str, video: Video, style: Style, *, greedy: bool, seed: int, **options: Any
) -> Iterator[Frame]:  # fmt: skip
    """Frames of one episode at 60 a second. The policy still decides once every `frame_skip` of them."""
    names = action_names(view.action_type)
    for step, envs in play_frames(agent, view, stage, seed=seed, greedy=greedy, **options):
        video.decisions += step.held == 1
        video.frames += 1
        video.x_max, video.cleared = int(step.info["x_max"][0]), bool(step.info["flag_get"][0])
        screen = envs.screen(0)
        yield _annotated(screen, step, names, stage, video) if style.overlay else screen
        if video.frames >= style.max_frames:
            return


def _annotated(screen: Frame, step: Step, names: tuple[str, ...], stage: str, video: Video) -> Frame:
    values: dict[str, float | str] = {"value": float(step.values[0]), "x": str(video.x_max), "stage": stage}
    probabilities, chosen = step.probabilities[0].tolist(), int(step.actions[0])
    return with_panel(screen, probabilities=probabilities, action_names=names, chosen=chosen, values=values)


def record_episode(
    agent: Player,
    view: ViewConfig,
    stage: str,
    path: Path,
    style: Style | None = None,
    *,
    greedy: bool = False,
    seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Video:
    """Record one episode to an MP4 or GIF. Raises RecordingStopped once `should_stop` comes true."""
    video, style = Video(), style or Style()
    frames = episode_frames(agent, view, stage, video, style, greedy=greedy, seed=seed, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    video.path = write_video(_until(should_stop, frames), path, scale=style.scale)
    return video


def _until(should_stop: Callable[[], bool], frames: Iterator[Frame]) -> Iterator[Frame]:
    for frame in frames:
        if should_stop():
            raise RecordingStopped
        yield frame


def record_best(
    agent: Agent, stage: str, path: Path, style: Style | None = None, *, tries: int = TRIES, seed: int = 0,
    **options: Any,
) -> Video:  # fmt: skip
    """Record an episode that clears the stage, if one of the tries does; else the one that got furthest."""
    take = best_take(agent, agent.view, stage, tries=tries, seed=seed, **options)
    return record_episode(
        Replayed(take), agent.view.fixed(), stage, path, style, seed=seed, level=take.stage, **options
    )


def record_replay(replay: Replay, rom: bytes, path: Path, *, scale: int = 2) -> Video:
    """Record a person's replay at the speed of the console. A replay that no longer ends as recorded is an error."""
    video = Video()

    def frames() -> Iterator[Frame]:
        for env in playing(replay, rom):
            video.x_max, video.cleared = env.telemetry["x_max"], bool(env.telemetry["flag_get"])
            yield env.screen()

    path.parent.mkdir(parents=True, exist_ok=True)
    video.path = write_video(frames(), path, fps=50 if replay.region == "pal" else NES_FPS, scale=scale)
    video.frames = len(replay.buttons)
    return video
