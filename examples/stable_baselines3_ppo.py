"""Stable-Baselines3's PPO on our environment.

pip install stable-baselines3
python examples/stable_baselines3_ppo.py --steps 512    # one update; without --steps: minutes
"""

from __future__ import annotations

import argparse

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import warpzone  # noqa: F401 - registers the environments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps

    def make() -> gym.Env:
        return gym.make("warpzone/SuperMarioBros-v0", stage="1-1", size=84, noop_max=30, stall_limit=300)

    envs = make_vec_env(make, n_envs=4, seed=0)
    model = PPO(
        "CnnPolicy",
        envs,
        n_steps=128,
        batch_size=128,
        n_epochs=4,
        gamma=0.97,
        ent_coef=0.01,
        seed=0,
        verbose=1,
    )
    model.learn(steps)
    model.save("stable_baselines3_ppo.zip")
    print(f"trained for {model.num_timesteps} steps; PPO.load reads stable_baselines3_ppo.zip")
    envs.close()


if __name__ == "__main__":
    main()
