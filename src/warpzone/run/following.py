"""Learners beside the first: they collect and learn with it, and do what it says.

Rank 0 has the run: its folder, its settings, episodes, curriculum, page and stops. Before every update it tells the
others what steers them; after it they tell which episodes ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.collect.env_group import Listeners
from warpzone.collect.interfaces import Environments
from warpzone.envs.rewards import RewardConfig
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.run.build import Placement, build_components
from warpzone.run.config import TrainConfig


@dataclass(frozen=True)
class Orders:
    """What holds for the next update on every rank."""

    learn: LearnConfig
    success: float
    adaptation: dict[str, Any]
    rewards: RewardConfig
    reward_decisions: int
    weights: list[float]


def lead_off(learner: Learner) -> None:
    """Give all learners the weights, moments and schedules of the first."""
    if learner.ranks.size > 1:
        learner.ranks.tell({**learner.state_dict(), "replay": None})


def lead(learner: Learner, envs: Sequence[Environments], weights: NDArray[np.float64]) -> None:
    """Let the other learners make the next update too."""
    if learner.ranks.size == 1:
        return
    shaper = envs[0].rewards
    learner.ranks.tell(
        Orders(
            learner.config, learner.success, learner.adaptation.state_dict(), shaper.config, shaper.decisions,
            weights.tolist(),
        )
    )  # fmt: skip


def dismiss(learner: Learner) -> None:
    """Let the other learners end."""
    if learner.ranks.size > 1:
        learner.ranks.tell(None)


def follow(
    config: TrainConfig, device: torch.device, placement: Placement, say: Callable[[str], None]
) -> None:
    """Collect and learn with rank 0 until it says that the run is over."""
    ranks = placement.ranks
    with closing(build_components(config, device, say, None, placement)) as parts:
        learner, records, wanted = parts.learner, deque[dict[str, Any]](), deque[list[float]](maxlen=1)

        def on_step(columns: slice, info: Any) -> None:
            # Stage weights are set on the thread that collects.
            if wanted:
                parts.set_stage_weights(np.array(wanted.pop()))

        state = ranks.tell(None)
        if state["reward_scale"]:
            # The returns of other environments.
            state["reward_scale"]["carried"] = None
        generator = learner.generator.get_state()
        learner.load_state_dict({**state, "generator": generator})
        parts.collector.start(Listeners(records.extend, on_step))
        while (orders := ranks.tell(None)) is not None:
            _obey(orders, learner, parts.envs)
            wanted.append(orders.weights)
            learner.update(parts.collector.collect())
            ranks.collect([records.popleft() for _ in range(len(records))])


def _obey(orders: Orders, learner: Learner, envs: Sequence[Environments]) -> None:
    learner.config, learner.success = orders.learn, orders.success
    learner.adaptation.load_state_dict(orders.adaptation)
    for part in envs:
        part.rewards.config = orders.rewards
        part.rewards.decisions = orders.reward_decisions
