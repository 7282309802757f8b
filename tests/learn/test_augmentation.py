"""Shifted observations, weight decay: what they do to a gradient step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.learn.rollouts import make_policy, random_rollout
from warpzone.learn.augmentation import random_shifts, shifted
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner


def moved(picture: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """The slow reference: pixel by pixel."""
    height, width = picture.shape[-2:]
    out = torch.empty_like(picture)
    for y in range(height):
        for x in range(width):
            out[..., y, x] = picture[
                ..., min(max(y - down, 0), height - 1), min(max(x - right, 0), width - 1)
            ]
    return out


@pytest.mark.parametrize("leading", [(5,), (3, 2)])
def test_every_observation_is_moved_by_its_own_shift(leading: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    obs = torch.randint(0, 256, (*leading, 4, 26, 32), generator=generator, dtype=torch.uint8)
    shifts = random_shifts(obs, generator) * 3
    found = shifted(obs, shifts)
    assert found.dtype == torch.uint8
    for one, by, out in zip(obs.flatten(0, -4), shifts.flatten(0, -2), found.flatten(0, -4), strict=True):
        assert torch.equal(out, moved(one, *by.tolist()))


def test_shifts_stay_within_a_twentieth_and_go_everywhere() -> None:
    shifts = random_shifts(torch.zeros(2000, 1, 84, 84), torch.Generator().manual_seed(1))
    assert set(shifts.unique().tolist()) == set(range(-4, 5))


def weights_after(
    updates: int, memory: str = "none", **settings: Any
) -> tuple[torch.Tensor, dict[str, float]]:
    policy = make_policy(memory)
    learner = Learner(policy, LearnConfig(minibatches=2, epochs=1, **settings), total_updates=50, seed=3)
    numbers = {}
    for update in range(updates):
        numbers = learner.update(random_rollout(policy, num_envs=8, seed=update))
    return torch.cat([p.detach().flatten() for p in policy.parameters()]), numbers


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_augmentation_makes_shifted_observations_be_played_alike(memory: str) -> None:
    _, few = weights_after(3, memory, augment_coef=5.0, learning_rate=3e-3)
    _, many = weights_after(20, memory, augment_coef=5.0, learning_rate=3e-3)
    _, without = weights_after(3, memory)
    assert without["loss_augment"] == 0
    assert few["loss_augment"] > 0
    assert many["loss_augment"] < few["loss_augment"]


def test_weight_decay_makes_weights_smaller() -> None:
    plain, _ = weights_after(10, learning_rate=1e-3)
    decayed, _ = weights_after(10, learning_rate=1e-3, weight_decay=0.1)
    assert decayed.norm() < 0.99 * plain.norm()
