"""Running scales against slow references; PopArt changes its statistics and not its outputs."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from warpzone.learn.normalise import PopArt, RewardScale
from warpzone.model.policy import ValueHead


def test_reward_scale_is_the_deviation_of_all_discounted_returns_so_far() -> None:
    rng = np.random.default_rng(0)
    scale = RewardScale(gamma=0.9)
    running, seen = np.zeros(3), []
    for _ in range(4):
        rewards = rng.normal(size=(5, 3)).astype(np.float32) * 7
        ends = rng.random((5, 3)) < 0.3
        for t in range(5):
            running = rewards[t] + running
            seen.append(running.copy())
            running = 0.9 * running * ~ends[t]
        scaled = scale(torch.tensor(rewards), torch.tensor(ends))
        expected = np.std(np.concatenate(seen))
        np.testing.assert_allclose(scale.std().item(), expected, rtol=1e-5)
        np.testing.assert_allclose(scaled, np.clip(rewards / expected, -10, 10), atol=1e-5)


def test_reward_scale_leaves_silence_alone() -> None:
    assert (RewardScale(0.9)(torch.zeros(4, 2), torch.zeros(4, 2, dtype=torch.bool)) == 0).all()


def test_reward_scale_goes_on_from_a_checkpoint() -> None:
    rewards, ends = torch.randn(6, 2), torch.zeros(6, 2, dtype=torch.bool)
    straight, saved, resumed = RewardScale(0.9), RewardScale(0.9), RewardScale(0.9)
    straight(rewards, ends)
    saved(rewards, ends)
    resumed.load_state_dict(saved.state_dict())
    assert torch.equal(straight(2 * rewards, ends), resumed(2 * rewards, ends))


def test_reward_scale_goes_on_with_another_number_of_environments() -> None:
    rewards, ends = torch.randn(6, 2), torch.zeros(6, 2, dtype=torch.bool)
    saved, resumed = RewardScale(0.9), RewardScale(0.9)
    saved(rewards, ends)
    resumed.load_state_dict(saved.state_dict())
    resumed(torch.randn(6, 5), torch.zeros(6, 5, dtype=torch.bool))
    assert resumed.moments[0] == 6 * 2 + 6 * 5


def slow_statistics(batches: list[tuple[np.ndarray, np.ndarray]], stages: int, rate: float) -> np.ndarray:
    """Mean and deviation per stage by exponential moving averages of the first two moments."""
    out = np.tile([0.0, 1.0], (stages, 1))
    for s in range(stages):
        mean = square = None
        for returns, stage in batches:
            mine = returns[stage == s]
            if not len(mine):
                continue
            new_mean, new_square = mine.mean(), (mine**2).mean()
            mean = new_mean if mean is None else mean + rate * (new_mean - mean)
            square = new_square if square is None else square + rate * (new_square - square)
            out[s] = mean, max(np.sqrt(max(square - mean**2, 0)), 1e-2)
    return out


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), spread=st.sampled_from([0.1, 1.0, 300.0]))
def test_popart_follows_each_stage_and_preserves_every_value(seed: int, spread: float) -> None:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    head = ValueHead(8, 4).double()
    popart = PopArt(head, rate=0.1)
    features = torch.randn(16, 8, dtype=torch.float64)
    everywhere = torch.arange(4).repeat(4)
    before = head(features, everywhere).detach()
    batches = []
    for _ in range(5):
        stage = rng.integers(0, 3, 40)  # stage 3 never comes
        returns = rng.normal(size=40) * spread + 10 * stage
        batches.append((returns, stage))
        popart.update(torch.tensor(returns), torch.tensor(stage))
        torch.testing.assert_close(head(features, everywhere), before, atol=1e-5, rtol=1e-5)
    expected = slow_statistics(batches, 4, 0.1)
    np.testing.assert_allclose(head.mean, expected[:, 0], atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(head.std, expected[:, 1], atol=1e-5, rtol=1e-5)


def test_popart_makes_the_linear_layer_work_near_zero() -> None:
    head = ValueHead(4, 1)
    popart = PopArt(head)
    returns = 1000 + 50 * torch.randn(400, generator=torch.Generator().manual_seed(0))
    popart.update(returns, torch.zeros(400, dtype=torch.int64))
    normalised = (returns - head.mean) / head.std
    assert abs(normalised.mean().item()) < 1e-3
    assert abs(normalised.std().item() - 1) < 1e-2
