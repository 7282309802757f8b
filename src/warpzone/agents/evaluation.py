"""How well a policy plays: fresh episodes from the true start of each stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from warpzone.agents.agent import Agent
from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.envs.vector import ENDS, MarioVectorEnv

MOST_ENVIRONMENTS = 256
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StageResult:
    """What the episodes of one stage came to."""

    stage: str
    episodes: int
    clear_rate: float
    mean_return: float
    mean_x: float
    max_x: int
    mean_steps: float
    mean_steps_cleared: float | None
    ends: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_stage(
    agent: Agent,
    view: ViewConfig,
    stage: str,
    *,
    episodes: int,
    greedy: bool,
    seed: int,
    threads: int = 0,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> StageResult | None:
    """Play `episodes` episodes; None if `should_stop` came true before they were over.

    Each environment plays a number fixed beforehand, so that short episodes do not count more often than long ones.
    """
    num_envs = min(episodes, MOST_ENVIRONMENTS)
    quota = np.full(num_envs, episodes // num_envs)
    quota[: episodes % num_envs] += 1
    envs = make_envs(
        view, num_envs, [stage], threads=threads, seed=seed, autoreset_mode="same_step", **options
    )
    try:
        return _play(agent, envs, stage, quota, greedy, seed, progress, should_stop)
    finally:
        envs.close()


def _play(
    agent: Agent,
    envs: MarioVectorEnv,
    stage: str,
    quota: np.ndarray[Any, np.dtype[np.int64]],
    greedy: bool,
    seed: int,
    progress: Progress | None,
    should_stop: Callable[[], bool],
) -> StageResult | None:
    total = int(quota.sum())
    agent.begin(envs.num_envs, seed, greedy=greedy)
    observations, _ = envs.reset(seed=seed)
    starts = np.ones(envs.num_envs, np.bool_)
    returns = np.zeros(envs.num_envs)
    done_returns: list[float] = []
    x, steps, cleared, ends = [], [], [], []
    while quota.any():
        if should_stop():
            return None
        actions, _, _ = agent.act(observations, starts)
        observations, rewards, terminated, truncated, info = envs.step(actions)
        returns += rewards
        starts = terminated | truncated
        for i in np.flatnonzero(starts):
            final = info["final_info"]
            if quota[i] > 0:
                quota[i] -= 1
                done_returns.append(float(returns[i]))
                x.append(int(final["x_max"][i]))
                steps.append(int(final["steps"][i]))
                cleared.append(bool(final["flag_get"][i]))
                ends.append(ENDS[int(final["end"][i])])
            returns[i] = 0
        if progress and starts.any():
            progress(len(x), total)
    steps_cleared = [s for s, c in zip(steps, cleared, strict=True) if c]
    return StageResult(
        stage=stage,
        episodes=total,
        clear_rate=float(np.mean(cleared)),
        mean_return=float(np.mean(done_returns)),
        mean_x=float(np.mean(x)),
        max_x=max(x),
        mean_steps=float(np.mean(steps)),
        mean_steps_cleared=float(np.mean(steps_cleared)) if steps_cleared else None,
        ends={name: ends.count(name) for name in sorted(set(ends))},
    )
