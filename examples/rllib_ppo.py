"""Ray RLlib's PPO on our environment.

pip install 'ray[rllib]' torch
python examples/rllib_ppo.py --iterations 1
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from gymnasium.wrappers import TransformObservation
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import warpzone  # noqa: F401 - registers the environments


def make(settings: dict[str, Any]) -> gym.Env:
    """One environment whose frames are as RLlib's networks expect them: channels last, from 0 to 1."""
    env = gym.make("warpzone/SuperMarioBros-v0", size=84, noop_max=30, stall_limit=300, **settings)
    space = gym.spaces.Box(0.0, 1.0, (84, 84, 4), np.float32)
    return TransformObservation(env, lambda frames: np.float32(frames.transpose(1, 2, 0)) / 255, space)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--batch", type=int, default=2048, help="decisions per iteration")
    parser.add_argument("--runners", type=int, default=0, help="processes that play (0 = this one)")
    args = parser.parse_args()
    ray.init(num_cpus=max(1, args.runners + 1), include_dashboard=False)
    register_env("mario", make)
    config = (
        PPOConfig()
        .environment("mario", env_config={"stage": "1-1"})
        .env_runners(num_env_runners=args.runners, num_envs_per_env_runner=8)
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=args.batch,
            minibatch_size=min(256, args.batch),
            num_epochs=2,
            gamma=0.9,
            lr=2.5e-4,
            entropy_coeff=0.01,
            grad_clip=0.5,
        )
    )
    algorithm = config.build_algo()
    for iteration in range(1, args.iterations + 1):
        played = algorithm.train()["env_runners"]
        steps = int(played["num_env_steps_sampled_lifetime"])
        mean = played.get("episode_return_mean", float("nan"))  # no episode has ended yet
        print(f"iteration {iteration}: {steps} decisions, mean return {mean:.2f}")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
