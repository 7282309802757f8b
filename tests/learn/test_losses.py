"""Objectives and statistics against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpzone.learn.losses import (
    action_logp,
    approximate_kl,
    clip_fraction,
    clipped_loss,
    explained_variance,
    normalise_advantages,
    policy_gradient_loss,
    value_loss,
)


def test_log_probabilities_and_entropy_are_those_of_the_categorical() -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    actions = torch.tensor([0, 1, 2, 3, 0])
    expected = torch.distributions.Categorical(logits=logits)
    logp, entropy = action_logp(logits, actions)
    torch.testing.assert_close(logp, expected.log_prob(actions))
    torch.testing.assert_close(entropy, expected.entropy())


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "has_gradient"),
    [
        (1.0, 2.0, -2.0, True),
        (1.5, 2.0, -2.4, False),
        (0.5, 2.0, -1.0, True),
        (1.5, -2.0, 3.0, True),
        (0.5, -2.0, 1.6, False),
    ],
)
def test_the_clipped_objective_stops_paying_beyond_the_clip(
    ratio: float, advantage: float, loss: float, has_gradient: bool
) -> None:
    logp = torch.tensor([np.log(ratio)], dtype=torch.float32, requires_grad=True)
    got = clipped_loss(logp, torch.zeros(1), torch.tensor([advantage]), clip=0.2)
    got.sum().backward()
    assert got.item() == pytest.approx(loss, abs=1e-5)
    assert (logp.grad is not None and bool(logp.grad.abs() > 1e-6)) == has_gradient


def test_both_objectives_have_the_same_gradient_before_the_policy_moves() -> None:
    advantages = torch.tensor([1.0, -2.0, 0.5])
    gradients = []
    for clipped in (True, False):
        logp = torch.tensor([-1.0, -0.5, -2.0], requires_grad=True)
        old = logp.detach().clone()
        loss = clipped_loss(logp, old, advantages, 0.2) if clipped else policy_gradient_loss(logp, advantages)
        gradients.append(torch.autograd.grad(loss.sum(), logp)[0])
    torch.testing.assert_close(*gradients)


def test_value_clipping_takes_the_worse_of_the_two_errors() -> None:
    values, returns, old = torch.tensor([2.0, 0.1]), torch.tensor([3.0, 0.0]), torch.tensor([0.0, 0.0])
    torch.testing.assert_close(value_loss(values, returns, old), torch.tensor([0.5, 0.005]))
    torch.testing.assert_close(
        value_loss(values, returns, old, clip=0.5), torch.tensor([0.5 * 2.5**2, 0.005])
    )


def test_value_loss_is_measured_in_units_of_the_scale() -> None:
    loss = value_loss(torch.tensor([40.0]), torch.tensor([20.0]), torch.zeros(1), scale=torch.tensor([10.0]))
    assert loss.item() == pytest.approx(2.0)


def test_kl_and_clip_fraction() -> None:
    old = torch.full((4,), -1.0)
    new = old + torch.tensor([0.0, 0.1, -0.1, 0.5])
    assert (approximate_kl(new, old) >= 0).all()
    assert approximate_kl(new, old)[0] == 0
    assert clip_fraction(new, old, 0.2).tolist() == [0, 0, 0, 1]


def test_explained_variance_is_one_for_perfect_and_zero_for_constant_values() -> None:
    returns = torch.tensor([1.0, 2.0, 5.0])
    assert explained_variance(returns, returns).item() == pytest.approx(1.0)
    assert explained_variance(torch.zeros(3), returns).item() == pytest.approx(0.0, abs=1e-6)


def test_each_stage_is_normalised_by_itself() -> None:
    rng = np.random.default_rng(0)
    stage = rng.integers(0, 3, (20, 5))
    advantages = rng.normal(size=(20, 5)) * (1 + 100.0 * stage) + 7 * stage
    got = normalise_advantages(
        torch.tensor(advantages, dtype=torch.float32), stage=torch.tensor(stage), num_stages=4
    ).numpy()
    for s in range(3):
        mine = advantages[stage == s]
        np.testing.assert_allclose(got[stage == s], (mine - mine.mean()) / mine.std(), atol=1e-5)


def test_a_stage_with_one_step_gives_zero_not_infinity() -> None:
    got = normalise_advantages(torch.tensor([3.0, 1.0, 2.0]), stage=torch.tensor([1, 0, 0]), num_stages=2)
    assert got[0] == 0
    assert torch.isfinite(got).all()
