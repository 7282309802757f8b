"""Evaluation: fixed quotas of fresh episodes, enumerated greedy starts, intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.agents import evaluation
from warpzone.agents.agent import Agent, make_policy
from warpzone.agents.evaluation import Trial, evaluate, evaluate_stage, idle_starts, stages_at_once
from warpzone.agents.intervals import clears_needed, wilson
from warpzone.envs.make import make_envs
from warpzone.errors import ConfigError
from warpzone.run.presets import CPU

RIGHT_RUN_JUMP, RIGHT_RUN = 4, 3


class Scripted(Agent):
    """Odd environments run into the first enemy and die soon; even ones stand still until the step limit."""

    def act(
        self, observations: NDArray[np.uint8], starts: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Tensor, Tensor]:
        n = len(starts)
        actions = np.where(np.arange(n) % 2, RIGHT_RUN, 0)
        return actions, torch.zeros(n, 7), torch.zeros(n)


@pytest.fixture(scope="module")
def agent() -> Scripted:
    view = replace(CPU.view, step_limit=100, stall_limit=0, noop_max=30)
    torch.manual_seed(0)
    policy = make_policy(CPU.model, view, 1, torch.device("cpu"), "auto", 1)
    return Scripted(policy, view, torch.device("cpu"))


def test_short_episodes_do_not_count_more_often_than_long_ones(agent: Scripted) -> None:
    told: list[tuple[int, int]] = []
    trial = Trial(episodes=6, threads=1)
    result = evaluate_stage(agent, "1-1", trial, on_progress=lambda done, total: told.append((done, total)))
    assert result is not None
    assert result.ends == {"death": 3, "step_limit": 3}
    assert told[-1] == (6, 6)


def test_stages_played_at_once_have_the_same_results(
    agent: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages, trial = ["1-1", "1-2", "2-1"], Trial(episodes=6, threads=3)
    one_by_one = evaluate(agent, stages, trial)
    told: dict[str, int] = {}
    monkeypatch.setattr(evaluation, "stages_at_once", lambda device, threads: 3)
    assert evaluate(agent, stages, trial, lambda stage, done, total: told.update({stage: done})) == one_by_one
    assert told == dict.fromkeys(stages, 6)
    assert [result.stage for result in one_by_one] == stages


def test_only_a_gpu_plays_several_stages_at_once() -> None:
    assert [stages_at_once("cuda", threads) for threads in (1, 4, 16)] == [1, 1, 4]
    assert stages_at_once("cpu", 16) == 1


def test_a_stop_ends_an_evaluation_without_a_result(agent: Scripted) -> None:
    assert evaluate_stage(agent, "1-1", Trial(episodes=2, threads=1), should_stop=lambda: True) is None


def test_greedy_play_has_one_episode_for_each_number_of_idle_frames(agent: Scripted) -> None:
    result = evaluate_stage(agent, "1-1", Trial(episodes=100, mode="greedy", threads=1))
    assert result is not None
    assert result.episodes == 31


def test_idle_starts_are_the_start_of_the_stage_after_0_1_2_idle_frames() -> None:
    starts = idle_starts(CPU.view, "1-1", 3)
    envs = make_envs(CPU.view, 3, ["1-1"], threads=1, noop_max=0, frame_skip=1)
    for i, blob in enumerate(starts):
        envs.queue_start(i, blob)
    envs.reset(seed=0)
    started = envs.ram.copy()
    plain = make_envs(CPU.view, 1, ["1-1"], threads=1, noop_max=0, frame_skip=1)
    plain.reset(seed=0)
    for i in range(3):
        assert np.array_equal(plain.ram[0], started[i])
        plain.step(np.zeros(1, np.int64))
    envs.close()
    plain.close()


def test_a_limit_of_the_view_does_not_begin_idle_starts_over() -> None:
    starts = idle_starts(replace(CPU.view, stall_limit=5, step_limit=8), "1-1", 20)
    assert len(set(starts)) == 20


def test_a_trial_that_cant_be_played_is_refused() -> None:
    for bad in ({"noop_max": -1}, {"sticky": 1.5}):
        with pytest.raises(ConfigError, match=r"must be (at least 0|from 0 to 1)"):
            Trial(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("clears", "episodes", "low", "high"),
    # From the formula's standard tables.
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (95, 100, 0.8882, 0.9785), (243, 256, 0.9151, 0.9699)],
)
def test_wilson_interval(clears: int, episodes: int, low: float, high: float) -> None:
    assert wilson(clears, episodes) == pytest.approx((low, high), abs=5e-4)


def test_clears_needed_is_the_first_number_whose_interval_lies_above() -> None:
    needed = clears_needed(0.9, 256)
    assert wilson(needed, 256)[0] >= 0.9 > wilson(needed - 1, 256)[0]
    assert clears_needed(0.99, 20) == 21
