"""Scripts as the video courses have them, for gym 0.21 and Stable-Baselines3 1: unchanged on gym 0.26 and 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gym", minversion="0.26")

FOUR_VALUES = """
import gym, gym_super_mario_bros
import numpy as np
from gym.wrappers import FrameStack, RecordEpisodeStatistics, TimeLimit, TransformObservation
from nes_py.wrappers import JoypadSpace

class Gray(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (120, 128), np.uint8)
    def observation(self, frame):
        return frame[::2, ::2].mean(axis=2).astype(np.uint8)

class Skip(gym.Wrapper):
    def step(self, action):
        total = 0
        for _ in range(4):
            frame, reward, done, info = self.env.step(action)
            total += reward
        return frame, total, done, info

class Sign(gym.RewardWrapper):
    def reward(self, reward):
        return float(np.sign(reward))

for make in (gym_super_mario_bros.make, gym.make):
    env = JoypadSpace(make("SuperMarioBros-1-1-v0"), [["right"], ["right", "A"]])
    env = FrameStack(TransformObservation(Gray(Skip(env)), lambda frame: frame / 255.0), 4)
    env = TimeLimit(RecordEpisodeStatistics(Sign(env)), 5)
    frames = env.reset()
    assert np.array(frames).shape == (4, 120, 128)
    steps = [env.step(1) for _ in range(5)]
    assert [step[2] for step in steps] == [False] * 4 + [True]
    assert steps[-1][3]["TimeLimit.truncated"] and steps[-1][1] == 1.0
    five = make("SuperMarioBros-1-1-v0", apply_api_compatibility=True)
    five = TimeLimit(Gray(JoypadSpace(five, [["right"]])), 2)
    assert five.reset(seed=1)[0].shape == (120, 128)
    assert [five.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]
print("through")
"""

STABLE_BASELINES = """
import gym, gym_super_mario_bros
import numpy as np
from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from nes_py.wrappers import JoypadSpace
from stable_baselines3 import PPO
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecMonitor

class Gray(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (60, 64, 1), np.uint8)
    def observation(self, frame):
        return frame[::4, ::4].mean(axis=2, keepdims=True).astype(np.uint8)

class Reward(gym.Wrapper):
    def reset(self):
        self.score = 0
        return self.env.reset()
    def step(self, action):
        frame, reward, done, info = self.env.step(action)
        reward += (info["score"] - self.score) / 40
        self.score = info["score"]
        return frame, reward, done, info

def game(**options):
    env = gym_super_mario_bros.make("SuperMarioBros-1-1-v0", **options)
    return Gray(Reward(JoypadSpace(env, SIMPLE_MOVEMENT)))

def skipping():
    return Monitor(MaxAndSkipEnv(game(), 4))

def five():
    env = gym_super_mario_bros.make("SuperMarioBros-v0", apply_api_compatibility=True, render_mode="rgb_array")
    return Gray(JoypadSpace(env, SIMPLE_MOVEMENT))

if __name__ == "__main__":
    env = game()
    env = DummyVecEnv([lambda: env])
    env = VecFrameStack(env, 4, channels_order="last")
    assert env.reset().shape == (1, 60, 64, 4)
    model = PPO("CnnPolicy", env, n_steps=4, batch_size=4, n_epochs=1, seed=1, device="cpu")
    model.learn(total_timesteps=4)
    model.save("model")
    action, _ = PPO.load("model").predict(env.reset())
    frames, reward, done, info = env.step(action)
    assert info[0]["x_pos"] == 40 and not done[0]
    env.close()
    workers = VecMonitor(SubprocVecEnv([skipping, skipping], start_method="spawn"))
    assert workers.reset().shape == (2, 60, 64, 1)
    assert workers.step([1, 1])[3][0]["x_pos"] >= 40
    workers.close()
    env = VecFrameStack(DummyVecEnv([five]), 4, channels_order="last")
    env.seed(3)
    assert env.reset().shape == (1, 60, 64, 4)
    assert env.render(mode="rgb_array").shape == (240, 256, 3)
    model = PPO("MlpPolicy", game(max_episode_steps=3), n_steps=4, batch_size=4, n_epochs=1, device="cpu")
    model.learn(total_timesteps=4)
    assert np.isfinite(evaluate_policy(model, game(max_episode_steps=3), n_eval_episodes=1)[0])
    env = make_vec_env("SuperMarioBros-1-2-v0", n_envs=1)
    assert env.reset().shape == (1, 240, 256, 3)
    assert env.step([0])[3][0]["stage"] == 2
    print("through")
"""


@pytest.mark.parametrize("script", [FOUR_VALUES, STABLE_BASELINES], ids=["four_values", "stable_baselines"])
def test_a_course(script: str, tmp_path: Path) -> None:
    if script is STABLE_BASELINES:
        pytest.importorskip("stable_baselines3", minversion="2.0")
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-W", "ignore", "-m", "warpzone.compat", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("through\n"), done.stderr
