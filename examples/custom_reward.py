"""A reward of your own: coins and speed instead of distance, computed from what the environment tells.

python examples/custom_reward.py --decisions 200
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np

import warpzone


class CoinsAndSpeed(gym.vector.VectorWrapper):
    """Pays for coins, for running, and for the flag; takes for dying."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observations, info = self.env.reset(**options)
        self.coins = info["coins"].copy()
        return observations, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, _, terminated, truncated, info = self.env.step(actions)
        new_coins = np.clip(info["coins"] - self.coins, 0, None)
        self.coins = info["coins"].copy()
        died = terminated & ~info["flag_get"]
        reward = 1.0 * new_coins + 0.02 * info["dx"] + 10.0 * info["flag_get"] - 5.0 * died
        return observations, reward.astype(np.float32), terminated, truncated, info


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=200)
    decisions = parser.parse_args().decisions
    envs = CoinsAndSpeed(warpzone.MarioVectorEnv(8, stage="1-1", seed=0))
    envs.reset(seed=0)
    run_right = envs.unwrapped.action_meanings.index("RIGHT+B")
    earned = np.zeros(8)
    for _ in range(decisions):
        _, reward, _, _, _ = envs.step(np.full(8, run_right))
        earned += reward
    print(f"running right for {decisions} decisions earns {earned.mean():.2f}")
    envs.close()


if __name__ == "__main__":
    main()
