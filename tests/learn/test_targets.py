"""Targets match slow references written step by step, and never look past the end of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from warpzone.learn.targets import Trajectory, gae, nstep, vtrace

Arrays = dict[str, np.ndarray]


def draw_trajectory(seed: int, steps: int, envs: int, end_rate: float) -> Arrays:
    rng = np.random.default_rng(seed)
    truncated = rng.random((steps, envs)) < end_rate
    return {
        "rewards": rng.normal(size=(steps, envs)),
        "values": rng.normal(size=(steps, envs)),
        "terminated": rng.random((steps, envs)) < end_rate,
        "truncated": truncated,
        "truncation_value": np.where(truncated, rng.normal(size=(steps, envs)), 0.0),
        "bootstrap": rng.normal(size=envs),
    }


def as_trajectory(arrays: Arrays, **changed: np.ndarray) -> Trajectory:
    tensors = {
        k: torch.tensor(v, dtype=torch.bool if v.dtype == bool else torch.float32)
        for k, v in (arrays | changed).items()
    }
    return Trajectory(**tensors)


trajectories: Any = st.builds(
    draw_trajectory,
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 12),
    envs=st.integers(1, 4),
    end_rate=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
discounts: Any = st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0])


def next_value(a: Arrays, t: int, n: int, estimates: np.ndarray) -> float:
    """What is worth having after step t of environment n."""
    if a["terminated"][t, n]:
        return 0.0
    if a["truncated"][t, n]:
        return float(a["truncation_value"][t, n])
    return float(a["bootstrap"][n] if t + 1 == len(a["rewards"]) else estimates[t + 1, n])


def slow_gae(a: Arrays, gamma: float, lam: float) -> np.ndarray:
    """Each advantage as its own sum of discounted errors up to the end of the episode."""
    steps, envs = a["rewards"].shape
    out = np.zeros((steps, envs))
    for n in range(envs):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                error = a["rewards"][k, n] + gamma * next_value(a, k, n, a["values"]) - a["values"][k, n]
                out[t, n] += weight * error
                weight *= gamma * lam
                if a["terminated"][k, n] or a["truncated"][k, n]:
                    break
    return out


def slow_vtrace(
    a: Arrays, log_ratio: np.ndarray, gamma: float, lam: float, rho_clip: float, c_clip: float
) -> tuple[np.ndarray, np.ndarray]:
    """Definition 1 of the paper: a product of clipped ratios before each later error."""
    steps, envs = a["rewards"].shape
    returns, advantages = a["values"].copy(), np.zeros((steps, envs))
    ratio = np.exp(log_ratio)
    for n in range(envs):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                error = a["rewards"][k, n] + gamma * next_value(a, k, n, a["values"]) - a["values"][k, n]
                returns[t, n] += weight * min(rho_clip, ratio[k, n]) * error
                weight *= gamma * lam * min(c_clip, ratio[k, n])
                if a["terminated"][k, n] or a["truncated"][k, n]:
                    break
        for t in range(steps):
            better = a["rewards"][t, n] + gamma * next_value(a, t, n, returns)
            advantages[t, n] = min(rho_clip, ratio[t, n]) * (better - a["values"][t, n])
    return returns, advantages


def slow_nstep(a: Arrays, gamma: float, length: int) -> np.ndarray:
    steps, envs = a["rewards"].shape
    out = np.zeros((steps, envs))
    for n in range(envs):
        for t in range(steps):
            for k in range(t, min(t + length, steps)):
                out[t, n] += gamma ** (k - t) * a["rewards"][k, n]
                is_last = k + 1 == min(t + length, steps)
                if a["terminated"][k, n] or a["truncated"][k, n] or is_last:
                    out[t, n] += gamma ** (k - t + 1) * next_value(a, k, n, a["values"])
                    break
    return out


@settings(max_examples=80, deadline=None)
@given(arrays=trajectories, gamma=discounts, lam=discounts)
def test_gae_matches_the_slow_reference(arrays: Arrays, gamma: float, lam: float) -> None:
    returns, advantages = gae(as_trajectory(arrays), gamma, lam)
    expected = slow_gae(arrays, gamma, lam)
    np.testing.assert_allclose(advantages, expected, atol=1e-5)
    np.testing.assert_allclose(returns, expected + arrays["values"], atol=1e-5)


@settings(max_examples=80, deadline=None)
@given(
    arrays=trajectories,
    gamma=discounts,
    lam=discounts,
    spread=st.sampled_from([0.0, 0.3, 2.0]),
    rho_clip=st.sampled_from([0.5, 1.0, 2.0]),
    c_clip=st.sampled_from([0.5, 1.0]),
)
def test_vtrace_matches_the_slow_reference(
    arrays: Arrays, gamma: float, lam: float, spread: float, rho_clip: float, c_clip: float
) -> None:
    log_ratio = np.random.default_rng(1).normal(size=arrays["rewards"].shape) * spread
    got = vtrace(
        as_trajectory(arrays), torch.tensor(log_ratio, dtype=torch.float32), gamma, lam, rho_clip, c_clip
    )
    returns, advantages = slow_vtrace(arrays, log_ratio, gamma, lam, rho_clip, c_clip)
    np.testing.assert_allclose(got.returns, returns, atol=2e-5)
    np.testing.assert_allclose(got.advantages, advantages, atol=2e-5)


@settings(max_examples=80, deadline=None)
@given(arrays=trajectories, gamma=discounts, length=st.integers(1, 14))
def test_nstep_matches_the_slow_reference(arrays: Arrays, gamma: float, length: int) -> None:
    returns, advantages = nstep(as_trajectory(arrays), gamma, length)
    expected = slow_nstep(arrays, gamma, length)
    np.testing.assert_allclose(returns, expected, atol=1e-5)
    np.testing.assert_allclose(advantages, expected - arrays["values"], atol=1e-5)


@given(arrays=trajectories, gamma=discounts)
@settings(max_examples=30, deadline=None)
def test_vtrace_without_lag_is_gae_with_lambda_one(arrays: Arrays, gamma: float) -> None:
    steps = as_trajectory(arrays)
    corrected = vtrace(steps, torch.zeros_like(steps.rewards), gamma)
    plain = gae(steps, gamma, 1.0)
    torch.testing.assert_close(corrected.returns, plain.returns, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(corrected.advantages, plain.advantages, atol=1e-5, rtol=1e-4)


def every_target(steps: Trajectory) -> list[torch.Tensor]:
    ratio = torch.full_like(steps.rewards, 0.2)
    return [*gae(steps, 0.9, 0.95), *vtrace(steps, ratio, 0.9), *nstep(steps, 0.9, 3)]


@pytest.mark.parametrize("ending", ["terminated", "truncated"])
def test_nothing_leaks_back_over_the_end_of_an_episode(ending: str) -> None:
    arrays = draw_trajectory(3, steps=8, envs=1, end_rate=0.0)
    arrays[ending][4] = True
    later = arrays["rewards"].copy()
    later[5:] += 1000.0
    values = arrays["values"].copy()
    values[5:] -= 1000.0
    for one, two in zip(
        every_target(as_trajectory(arrays)),
        every_target(as_trajectory(arrays, rewards=later, values=values)),
        strict=True,
    ):
        assert torch.equal(one[:5], two[:5])
        assert not torch.equal(one[5:], two[5:])


def test_a_terminated_step_has_no_future_and_a_truncated_one_its_own() -> None:
    arrays = draw_trajectory(4, steps=1, envs=3, end_rate=0.0)
    arrays["terminated"][0] = [True, False, False]
    arrays["truncated"][0] = [False, True, False]
    arrays["truncation_value"][0] = [7.0, 7.0, 7.0]
    expected = arrays["rewards"][0] + 0.9 * np.array([0.0, 7.0, arrays["bootstrap"][2]])
    for returns in every_target(as_trajectory(arrays))[::2]:
        np.testing.assert_allclose(returns[0], expected, atol=1e-5)


def test_the_last_step_bootstraps_from_the_value_after_it_not_its_own() -> None:
    arrays = draw_trajectory(5, steps=3, envs=1, end_rate=0.0)
    arrays["bootstrap"][:] = 50.0
    returns, _ = gae(as_trajectory(arrays), 1.0, 1.0)
    assert returns[-1, 0].item() == pytest.approx(arrays["rewards"][-1, 0] + 50.0, abs=1e-4)
