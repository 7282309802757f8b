"""Playing episodes. Evaluation, recording, the montage and the live page all use `play`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.envs.vector import MarioVectorEnv

if TYPE_CHECKING:
    from torch import Tensor

Bools = NDArray[np.bool_]


class Player(Protocol):
    """What `play` requires of an agent."""

    rows: Bools | None
    """Where actions count."""

    def begin(self, num_envs: int, seed: int, *, greedy: bool) -> None: ...

    def act(
        self, observations: NDArray[np.uint8], starts: Bools
    ) -> tuple[NDArray[np.int64], Tensor, Tensor]: ...


@dataclass(frozen=True)
class Step:
    """One step of the environments, and the decision behind it."""

    held: int
    """How many steps the action has been held, from 1 on."""
    actions: NDArray[np.int64]
    probabilities: Tensor
    values: Tensor
    rewards: NDArray[np.float32]
    over: Bools
    """Episodes that ended with this step."""
    info: dict[str, Any]

    @property
    def final(self) -> dict[str, Any]:
        """The info of episodes at their last step, also where the next one has begun already."""
        final: dict[str, Any] = self.info.get("final_info", self.info)
        return final


def play(
    agent: Player, envs: MarioVectorEnv, *, seed: int, greedy: bool, hold: int = 1, stack: int = 1,
    rows: Bools | None = None,
) -> Iterator[Step]:  # fmt: skip
    """Play from a reset of `envs`, until the caller stops. In `rows` the caller may say, from step to step, which
    environments still count: a large network takes most of the time of an evaluation.

    With `hold` the environments step frame by frame while the agent decides once every `hold` frames, from the last
    `stack` observations: the same play, with every frame visible.
    """
    agent.begin(envs.num_envs, seed, greedy=greedy)
    agent.rows = rows
    observations, _ = envs.reset(seed=seed)
    recent = deque([observations.copy()] * stack, maxlen=stack)
    starts = np.ones(envs.num_envs, np.bool_)
    try:
        while True:
            actions, probabilities, values = agent.act(np.concatenate(recent, axis=1), starts)
            starts = np.zeros(envs.num_envs, np.bool_)
            for held in range(1, hold + 1):
                observations, rewards, terminated, truncated, info = envs.step(actions)
                over = terminated | truncated
                starts |= over
                yield Step(held, actions, probabilities, values, rewards, over, info)
                if starts.all():
                    break
            recent.append(observations.copy() if stack > 1 else observations)
    finally:
        agent.rows = None


def play_frames(
    agent: Player, view: ViewConfig, stage: str, *, seed: int, greedy: bool = False, level: str = "", **options: Any
) -> Iterator[tuple[Step, MarioVectorEnv]]:  # fmt: skip
    """One episode, every frame of it, with the environment at that frame. The agent decides as with the view itself.
    `level` is one of several that `stage` names."""
    envs = make_envs(
        view, 1, [stage], threads=1, seed=seed, frame_skip=1, frame_stack=1, autoreset_mode="disabled",
        stall_limit=view.stall_limit * view.frame_skip, step_limit=0, pin_threads=False, **options,
    )  # fmt: skip
    try:
        if level:
            envs.set_stage(level)
        for step in play(agent, envs, seed=seed, greedy=greedy, hold=view.frame_skip, stack=view.frame_stack):
            yield step, envs
            if step.over[0]:
                return
    finally:
        envs.close()


@dataclass
class Take:
    """A played episode: the agent's decisions and the outcome."""

    stage: str
    """The stage, or the one level that it was."""
    actions: list[int]
    cleared: bool
    progress: int
    probabilities: Sequence[Tensor] = ()
    values: Sequence[Tensor] = ()


class Replayed:
    """Plays a take again, action by action."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._at = 0
        self.rows: Bools | None = None

    def begin(self, num_envs: int, seed: int, *, greedy: bool) -> None:
        self._at = 0

    def act(self, observations: NDArray[np.uint8], starts: Bools) -> tuple[NDArray[np.int64], Tensor, Tensor]:
        take, at = self._take, min(self._at, len(self._take.actions) - 1)
        self._at += 1
        return np.array([take.actions[at]]), take.probabilities[at][None], take.values[at][None]


def best_take(
    agent: Player, view: ViewConfig, stage: str, *, tries: int, seed: int, max_decisions: int = 0, **options: Any
) -> Take:  # fmt: skip
    """The first of `tries` sampled episodes to clear the stage, else the one that got furthest.

    Nothing is random but the agent: the actions alone then give the same episode again.
    """
    envs = make_envs(view.fixed(), tries, [stage], seed=seed, autoreset_mode="same_step", **options)
    playing, best = np.ones(tries, np.bool_), Take(stage, [], False, -1)
    taken: list[Step] = []
    try:
        for step in play(agent, envs, seed=seed, greedy=False, rows=playing):
            taken.append(step)
            cut_short = bool(max_decisions) and len(taken) >= max_decisions
            for i in np.flatnonzero(playing & (step.over | cut_short)).tolist():
                cleared, progress = bool(step.final["flag_get"][i]), int(step.final["progress"][i])
                if (cleared, progress) > (best.cleared, best.progress):
                    name = envs.stage_names[int(step.final["stage_index"][i])]
                    best = _take(name, taken, i, cleared, progress)
            playing &= ~step.over
            if best.cleared or cut_short or not playing.any():
                return best
    finally:
        envs.close()
    raise AssertionError("play never ends by itself")


def _take(stage: str, steps: Sequence[Step], env: int, cleared: bool, progress: int) -> Take:
    return Take(
        stage, [int(step.actions[env]) for step in steps], cleared, progress,
        [step.probabilities[env] for step in steps], [step.values[env] for step in steps],
    )  # fmt: skip
