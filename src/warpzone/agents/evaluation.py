"""How well a policy plays: fresh episodes from the true start of each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from warpzone.agents.intervals import wilson
from warpzone.agents.play import Player, play
from warpzone.envs.config import MAX_THREADS, ViewConfig, thread_count
from warpzone.envs.make import make_envs
from warpzone.envs.telemetry import ENDS
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import require

if TYPE_CHECKING:
    from warpzone.agents.agent import Agent

MOST_ENVIRONMENTS = 256
THREADS_OF_A_STAGE = 4
"""Some hundred environments of one stage hardly use more."""
Mode = Literal["sampled", "greedy", "sticky"]
MODES: tuple[Mode, ...] = ("sampled", "greedy", "sticky")
OnProgress = Callable[[int, int], None]
"""Called with the number done, such as episodes played, and the total."""


@dataclass(frozen=True)
class StageResult:
    """The episodes of one stage. `interval` encloses the clear rate with 95 % confidence (Wilson)."""

    stage: str
    episodes: int
    clears: int
    mean_return: float
    mean_x: float
    max_x: int
    mean_steps: float
    mean_steps_cleared: float | None
    ends: dict[str, int]

    @property
    def clear_rate(self) -> float:
        return self.clears / self.episodes

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.clears, self.episodes)

    def as_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {**asdict(self), "clear_rate": self.clear_rate, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.clear_rate:.1%} of {self.episodes} episodes cleared ({low:.1%} to {high:.1%})"


@dataclass(frozen=True)
class Trial:
    """How the episodes of an evaluation are played."""

    episodes: int = 100
    """Episodes for each stage; greedy play has one for each number of idle frames instead, as there are no more."""
    mode: Mode = "sampled"
    noop_max: int = 30
    """Most idle frames before the first decision."""
    sticky: float = 0.25
    """Probability in the sticky mode, frame by frame, that the buttons stay as they were."""
    seed: int = 12345
    threads: int = 0
    random_start: float = 0.0
    """Share of episodes that start as if in the middle of a game; of greedy ones, none."""

    def __post_init__(self) -> None:
        require(self, "noop_max", at_least=0)
        require(self, "sticky", at_least=0, at_most=1)

    def numbers_starts_of(self, stage: str) -> bool:
        """Whether episodes start after 0, 1, 2, ... idle frames: greedy ones, but for levels sampled per episode."""
        return self.mode == "greedy" and "@" not in stage

    def episodes_of(self) -> int:
        return self.noop_max + 1 if self.mode == "greedy" else self.episodes

    def view(self, view: ViewConfig) -> ViewConfig:
        """A trained view with the randomness of these episodes."""
        greedy, sticky = self.mode == "greedy", self.sticky if self.mode == "sticky" else 0.0
        return view.fixed(
            sticky=sticky,
            **({} if greedy else {"noop_max": self.noop_max, "random_start": self.random_start}),
        )


def evaluate_stage(
    agent: Agent,
    stage: str,
    trial: Trial,
    *,
    on_progress: OnProgress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> StageResult | None:
    """Play the trial's episodes of a stage; None if `should_stop` came true before they were over.

    Each environment plays a number fixed beforehand, so that short episodes do not count more often than long ones.
    """
    numbered = trial.numbers_starts_of(stage)
    episodes = trial.episodes_of() if numbered else trial.episodes
    num_envs = episodes if numbered else min(episodes, MOST_ENVIRONMENTS)
    quota = np.full(num_envs, episodes // num_envs)
    quota[: episodes % num_envs] += 1
    with trial_envs(trial.view(agent.view), stage, num_envs, trial, **options) as envs:
        return _count(agent, envs, stage, quota, trial, on_progress, should_stop)


@contextmanager
def trial_envs(
    view: ViewConfig, stage: str, num_envs: int, trial: Trial, **options: Any
) -> Iterator[MarioVectorEnv]:
    """The environments of a trial, with the starts that it numbers."""
    starts = idle_starts(view, stage, num_envs, **options) if trial.numbers_starts_of(stage) else []
    envs = make_envs(
        view, num_envs, [stage], threads=trial.threads, seed=trial.seed, autoreset_mode="same_step", **options
    )
    try:
        for i, blob in enumerate(starts):
            envs.queue_start(i, blob)
        yield envs
    finally:
        envs.close()


def idle_starts(view: ViewConfig, stage: str, count: int, **options: Any) -> list[bytes]:
    """Snapshots of a stage's start after 0, 1, 2, ... idle frames."""
    unlimited = view.fixed(frame_skip=1, frame_stack=1, stall_limit=0, step_limit=0)
    envs = make_envs(unlimited, 1, [stage], threads=1, **options)
    try:
        envs.reset(seed=0)
        starts = [envs.snapshot(0)]
        while len(starts) < count:
            envs.step(np.zeros(1, np.int64))
            starts.append(envs.snapshot(0))
        return starts
    finally:
        envs.close()


def evaluate(
    agent: Agent,
    stages: Sequence[str],
    trial: Trial,
    on_progress: Callable[[str, int, int], None] | None = None,
    **options: Any,
) -> list[StageResult]:
    """The results of several stages; `on_progress` is told the stage, its episodes played and their total. On a
    GPU, which one stage leaves idle most of the time, several are played at once."""
    threads = thread_count(trial.threads, MAX_THREADS)
    at_once = min(len(stages), stages_at_once(agent.device.type, threads))
    trial = replace(trial, threads=max(1, threads // at_once))

    def one(stage: str) -> StageResult:
        told = (lambda done, total: on_progress(stage, done, total)) if on_progress else None
        # A copy has the same weights, and random numbers and a memory of its own.
        result = evaluate_stage(copy(agent), stage, trial, on_progress=told, **options)
        assert result is not None
        return result

    if at_once == 1:
        return [one(stage) for stage in stages]
    # Pinned threads of several stages would all sit on the first cores.
    options["pin_threads"] = False
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, stages))


def stages_at_once(device: str, threads: int) -> int:
    """How many stages are played at once. The policy that a CPU uses is for one thread at a time."""
    return max(1, threads // THREADS_OF_A_STAGE) if device == "cuda" else 1


def _count(
    agent: Player,
    envs: MarioVectorEnv,
    stage: str,
    quota: NDArray[np.int64],
    trial: Trial,
    on_progress: OnProgress | None,
    should_stop: Callable[[], bool],
) -> StageResult | None:
    total = int(quota.sum())
    returns = np.zeros(envs.num_envs)
    done: list[tuple[float, int, int, bool, str]] = []
    counts = quota > 0
    for step in play(agent, envs, seed=trial.seed, greedy=trial.mode == "greedy", rows=counts):
        if should_stop():
            return None
        returns += step.rewards
        for i in np.flatnonzero(step.over).tolist():
            if quota[i] > 0:
                quota[i] -= 1
                counts[i] = quota[i] > 0
                final = step.final
                x, steps, cleared = int(final["x_max"][i]), int(final["steps"][i]), bool(final["flag_get"][i])
                done.append((float(returns[i]), x, steps, cleared, ENDS[int(final["end"][i])]))
            returns[i] = 0
        if on_progress and step.over.any():
            on_progress(len(done), total)
        if len(done) == total:
            break
    earned, x_max, lengths, cleared_, ends = zip(*done, strict=True)
    lengths_cleared = [length for length, cleared in zip(lengths, cleared_, strict=True) if cleared]
    return StageResult(
        stage=stage,
        episodes=total,
        clears=sum(cleared_),
        mean_return=float(np.mean(earned)),
        mean_x=float(np.mean(x_max)),
        max_x=max(x_max),
        mean_steps=float(np.mean(lengths)),
        mean_steps_cleared=float(np.mean(lengths_cleared)) if lengths_cleared else None,
        ends={name: ends.count(name) for name in sorted(set(ends))},
    )
