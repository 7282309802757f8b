"""Stable-Baselines3 trains on the environment as it is."""

from __future__ import annotations

import numpy as np
import pytest

import warpzone

pytest.importorskip("stable_baselines3")


def test_ppo_trains_on_the_single_environment_unmodified() -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(lambda: warpzone.MarioEnv("1-1", size=42, step_limit=40), n_envs=2)
    model = PPO("CnnPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(256)
    assert model.num_timesteps == 256
    assert any(
        not np.array_equal(a.numpy(), b.detach().numpy())
        for a, b in zip(before, model.policy.parameters(), strict=True)
    )
    action, _ = model.predict(envs.reset())
    assert action.shape == (2,)
    envs.close()
