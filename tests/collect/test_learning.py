"""Every memory, algorithm, way of collecting and kind of replay solves a small task, in seconds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from tests.collect.fake_envs import DelayedCredit, FakeEnvs, TMaze
from warpzone.collect.config import CollectConfig
from warpzone.collect.env_group import Listeners
from warpzone.collect.make import make_collector
from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.learner import Learner
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy

ENVS, STEPS = 32, 10
COLLECTING: dict[str, dict[str, bool]] = {
    "serial": {},
    "double": {"double_buffer": True},
    "overlap": {"overlap_collect": True},
}


def score_after_training(
    task: type[FakeEnvs],
    updates: int,
    *,
    algo: str = "ppo",
    recurrent_type: str = "none",
    collecting: str = "serial",
    replay: ReplayConfig | None = None,
    **learning: Any,
) -> float:
    """Mean return of the last 100 episodes; 1 is perfect in every task."""
    torch.manual_seed(0)
    model = ModelConfig(encoder="tiny", hidden=32, recurrent_type=recurrent_type, memory_length=8)  # type: ignore[arg-type]
    policy = Policy(model, (1, 8, 8), task.num_actions)
    settings = {"learning_rate": 3e-3, "gamma": 0.95, "lr_schedule": "constant"} | learning
    learner = Learner(policy, LearnConfig(algo=algo, **settings), replay=replay, total_updates=updates)  # type: ignore[arg-type]
    collect = CollectConfig(num_envs=ENVS, rollout_steps=STEPS, **COLLECTING[collecting])
    halves = 2 if collect.double_buffer else 1
    episodes: list[dict[str, Any]] = []
    collector = make_collector(
        collect,
        [task(ENVS // halves, seed=part) for part in range(halves)],
        policy,
        learner.policy_snapshot,
        stack=1,
    )
    collector.start(Listeners(on_episodes=episodes.extend))
    try:
        for _ in range(updates):
            learner.update(collector.collect())
    finally:
        collector.close()
        learner.close()
    return sum(episode["return"] for episode in episodes[-100:]) / 100


@pytest.mark.parametrize("recurrent_type", ["gru", "lstm", "transformer"])
def test_every_memory_solves_a_task_that_needs_one(recurrent_type: str) -> None:
    score = score_after_training(TMaze, 30, recurrent_type=recurrent_type, minibatches=4)
    assert score > 0.8


def test_without_memory_that_task_cannot_be_solved() -> None:
    assert score_after_training(TMaze, 30) < 0.4


@pytest.mark.parametrize(
    ("algo", "updates", "collecting"),
    [
        # Each algorithm and each way once; make test-all has all pairs.
        pytest.param(algo, updates, way, marks=[pytest.mark.long] * (way not in ("serial", usual)))
        for algo, updates, usual in (
            ("ppo", 15, "double"),
            ("appo", 15, "overlap"),
            ("impala", 40, "overlap"),
            ("a3c", 70, "serial"),
        )
        for way in COLLECTING
    ],
)
def test_every_algorithm_finds_the_cause_of_a_late_reward(algo: str, updates: int, collecting: str) -> None:
    assert score_after_training(DelayedCredit, updates, algo=algo, collecting=collecting) > 0.8


@pytest.mark.parametrize(("algo", "updates"), [("impala", 60), ("appo", 25)])
def test_a_memory_learns_from_lagging_rollouts_too(algo: str, updates: int) -> None:
    score = score_after_training(
        TMaze, updates, algo=algo, recurrent_type="gru", collecting="overlap", minibatches=4
    )
    assert score > 0.8


@pytest.mark.parametrize("gpu_sample", [False, True])
@pytest.mark.parametrize("interval", [1, 3])
def test_replay_makes_the_plain_algorithm_learn_from_fewer_steps(gpu_sample: bool, interval: int) -> None:
    replay = ReplayConfig(
        per=True,
        per_capacity=16 * ENVS * STEPS,
        per_batches=2 * interval,
        per_sample_interval=interval,
        per_gpu_sample=gpu_sample,
    )
    with_replay = score_after_training(DelayedCredit, 25, algo="a3c", replay=replay)
    assert with_replay > 0.8
    assert plain_score() < with_replay


@cache
def plain_score() -> float:
    return score_after_training(DelayedCredit, 25, algo="a3c")


def test_replayed_sequences_teach_a_memory() -> None:
    replay = ReplayConfig(per=True, per_capacity=16 * ENVS * STEPS, per_batches=2)
    assert score_after_training(TMaze, 60, algo="a3c", recurrent_type="gru", replay=replay) > 0.8
