"""Stable-Baselines3 trains on the environment as it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import warpzone

pytest.importorskip("stable_baselines3")


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    """For so small a network a second thread only waits for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_ppo_trains_on_the_single_environment_unmodified() -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(lambda: warpzone.MarioEnv("1-1", size=42, step_limit=40), n_envs=4)
    model = PPO("CnnPolicy", envs, n_steps=256, batch_size=256, n_epochs=1, seed=0, device="cpu")
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(10_000)
    assert model.num_timesteps >= 10_000
    assert any(
        not np.array_equal(a.numpy(), b.detach().numpy())
        for a, b in zip(before, model.policy.parameters(), strict=True)
    )
    action, _ = model.predict(envs.reset())
    assert action.shape == (4,)
    envs.close()
