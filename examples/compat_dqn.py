"""A DQN on raw frames for gym-super-mario-bros 7, in the style of tutorials; the code does not import warpzone.

    python examples/compat_dqn.py                          # on gym_super_mario_bros and nes_py
    python -m warpzone.compat examples/compat_dqn.py       # the same script on warpzone's engine

Both print the same results, because frames, rewards and episode ends are the same; only the speed differs.
"""

import argparse
import random
import time
from collections import deque

import gym
import gym_super_mario_bros
import numpy as np
import torch
from nes_py.wrappers import JoypadSpace
from torch import nn


class SkipFrame(gym.Wrapper):
    """Repeats an action and sums the rewards."""

    def __init__(self, env, skip):
        super().__init__(env)
        self.skip = skip

    def step(self, action):
        total = 0.0
        for _ in range(self.skip):
            obs, reward, done, truncated, info = self.env.step(action)
            total += reward
            if done:
                break
        return obs, total, done, truncated, info


class SmallGray(gym.ObservationWrapper):
    """Every third pixel of the frame below the status bar, in grey: 70 x 86."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (70, 86), np.uint8)

    def observation(self, frame):
        return frame[32::3, ::3].mean(axis=2).astype(np.uint8)


class Stack(gym.Wrapper):
    """The last frames, newest last."""

    def __init__(self, env, count):
        super().__init__(env)
        self.frames = deque(maxlen=count)

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        self.frames.extend([obs] * self.frames.maxlen)
        return np.stack(self.frames), info

    def step(self, action):
        obs, reward, done, truncated, info = self.env.step(action)
        self.frames.append(obs)
        return np.stack(self.frames), reward, done, truncated, info


def network(actions):
    return nn.Sequential(
        nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 7 * 9, 128), nn.ReLU(), nn.Linear(128, actions),
    )  # fmt: skip


def batch_of(memory, size):
    states, actions, rewards, nexts, dones = zip(*random.sample(memory, size), strict=True)
    frames = [torch.from_numpy(np.stack(part)).float() / 255 for part in (states, nexts)]
    return frames[0], torch.tensor(actions), torch.tensor(rewards), frames[1], torch.tensor(dones).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=2000)
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)

    env = gym_super_mario_bros.make(
        "SuperMarioBros-1-1-v0",
        render_mode="rgb_array",
        apply_api_compatibility=True,
        disable_env_checker=True,
    )
    env = JoypadSpace(env, [["right"], ["right", "A"]])
    env = Stack(SmallGray(SkipFrame(env, skip=4)), count=4)

    online, target = network(2), network(2)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=2.5e-4)
    memory, epsilon, furthest, returned, episodes = deque(maxlen=20000), 1.0, 0, 0.0, 1
    began = time.perf_counter()
    state, _ = env.reset()
    for decision in range(args.decisions):
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = int(online(torch.from_numpy(state[None]).float() / 255).argmax())
        epsilon = max(0.1, epsilon * 0.999)
        following, reward, done, truncated, info = env.step(action)
        memory.append((state, action, reward, following, done))
        furthest, returned, state = max(furthest, info["x_pos"]), returned + reward, following
        if done or truncated:
            state, _ = env.reset()
            episodes += 1
        if len(memory) >= 32 and decision % 4 == 0:
            states, actions, rewards, nexts, dones = batch_of(memory, 32)
            with torch.no_grad():
                best = online(nexts).argmax(1, keepdim=True)
                goal = rewards + 0.9 * (1 - dones) * target(nexts).gather(1, best).squeeze(1)
            loss = nn.functional.smooth_l1_loss(online(states).gather(1, actions[:, None]).squeeze(1), goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if decision % 500 == 0:
            target.load_state_dict(online.state_dict())
    weights = sum(float(p.double().sum()) for p in online.parameters())
    print(f"{episodes} episodes, return {returned:.0f}, furthest {furthest}, weights {weights:.9f}")
    print(f"{args.decisions / (time.perf_counter() - began):.0f} decisions/s")


if __name__ == "__main__":
    main()
