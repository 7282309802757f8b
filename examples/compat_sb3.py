"""Stable-Baselines3's PPO for gym-super-mario-bros 7, in the style of video courses; it does not import warpzone.

    python examples/compat_sb3.py                          # on gym_super_mario_bros and nes_py
    python -m warpzone.compat examples/compat_sb3.py       # the same script on warpzone's engine

Stable-Baselines3 2 needs Gymnasium environments, so a small adapter turns the four return values of `step` into five.
"""

import argparse
import time

import gym_super_mario_bros
import gymnasium
import numpy as np
import torch
from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from nes_py.wrappers import JoypadSpace
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack


class Mario(gymnasium.Env):
    """Grey frames of 80 x 86 every fourth step, with Gymnasium's interface."""

    observation_space = gymnasium.spaces.Box(0, 255, (80, 86, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(len(SIMPLE_MOVEMENT))

    def __init__(self):
        self.env = JoypadSpace(gym_super_mario_bros.SuperMarioBrosEnv(target=(1, 1)), SIMPLE_MOVEMENT)

    @staticmethod
    def gray(frame):
        return frame[::3, ::3].mean(axis=2).astype(np.uint8)[..., None]

    def reset(self, *, seed=None, options=None):
        return self.gray(self.env.reset()), {}

    def step(self, action):
        total = 0.0
        for _ in range(4):
            frame, reward, done, info = self.env.step(int(action))
            total += reward
            if done:
                break
        return self.gray(frame), total, done, False, info


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=512, help="steps between updates")
    args = parser.parse_args()
    torch.set_num_threads(1)
    env = VecFrameStack(DummyVecEnv([Mario]), 4, channels_order="last")
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=args.batch,
        batch_size=32,
        n_epochs=1,
        learning_rate=1e-4,
        seed=0,
        device="cpu",
    )
    began = time.perf_counter()
    model.learn(total_timesteps=args.steps)
    seconds = time.perf_counter() - began
    weights = sum(float(p.detach().double().sum()) for p in model.policy.parameters())
    print(f"{model.num_timesteps} steps, weights {weights:.9f}")
    print(f"{model.num_timesteps / seconds:.0f} steps/s")


if __name__ == "__main__":
    main()
