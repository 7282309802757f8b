"""Where an agent arrives: its own play from stage to stage, kept at the first moment of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpzone.agents.agent import Agent
from warpzone.agents.evaluation import idle_starts
from warpzone.agents.play import play
from warpzone.envs.make import make_envs
from warpzone.envs.stages import ALL_STAGES, GAME
from warpzone.envs.telemetry import died

IDLE = 31
"""Different starts of a stage: 0 to 30 idle frames."""
MOST_ENVIRONMENTS = 128


def collect_arrivals(
    agent: Agent, stages: Sequence[str], each: int, *, seed: int = 0, threads: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False, **options: Any,
) -> dict[str, list[bytes]]:  # fmt: skip
    """Up to `each` moments at which the agent arrives in each of `stages` from the stage before.

    Every environment begins in a stage before one of them and plays on as in the whole game, until its lives are lost;
    then it begins where arrivals are scarce. Ends when all are there, or with what there is when `should_stop` says so.
    """
    wanted = {stage: ALL_STAGES[ALL_STAGES.index(stage) - 1] for stage in stages if stage != ALL_STAGES[0]}
    arrived: dict[str, list[bytes]] = {stage: [] for stage in wanted}
    if not wanted:
        return {}
    view = agent.view.fixed(stall_limit=0, step_limit=0)
    starts = {stage: idle_starts(view, before, IDLE, **options) for stage, before in wanted.items()}
    num_envs = min(MOST_ENVIRONMENTS, each * len(wanted))
    random = np.random.default_rng(seed)
    envs = make_envs(
        view, num_envs, [GAME], threads=threads, seed=seed, autoreset_mode="same_step", **options
    )

    def send(env: int, number: int) -> None:
        """Let the next episode of an environment lead to the stage that is short of arrivals."""
        scarce = sorted(arrived, key=lambda stage: len(arrived[stage]))
        blobs = starts[scarce[number % len(scarce)]]
        envs.queue_start(env, blobs[random.integers(len(blobs))])

    try:
        for env in range(num_envs):
            send(env, env)
        before: dict[str, Any] = {}
        for step in play(agent, envs, seed=seed, greedy=False):
            now = {name: step.info[name].copy() for name in ("world", "stage", "life", "end")}
            for env in np.flatnonzero(_advanced(before, now) & ~step.over).tolist():
                stage = f"{now['world'][env]}-{now['stage'][env]}"
                if len(arrived.get(stage, [None] * each)) < each:
                    arrived[stage].append(envs.snapshot(env, whole_stack=False))
            for env in np.flatnonzero(step.over).tolist():
                send(env, 0)
            before = now
            done = sum(map(len, arrived.values()))
            on_progress(done, each * len(wanted))
            if done == each * len(wanted) or should_stop():
                return arrived
    finally:
        envs.close()
    raise AssertionError("play never ends by itself")


def _advanced(before: dict[str, Any], now: dict[str, Any]) -> Any:
    """Where the stage after the last one began, without a death in between."""
    if not before:
        return np.zeros(len(now["world"]), np.bool_)
    index = [4 * told["world"] + told["stage"] for told in (before, now)]
    return (index[1] == index[0] + 1) & ~died(before, now)
