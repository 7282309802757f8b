"""A network of your own, trained by our learner on our environments.

python examples/custom_network.py --updates 3
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import warpzone
from warpzone.collect import Listeners, make_collector
from warpzone.collect.config import CollectConfig
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy


class Patches(nn.Module):
    """Cuts the picture into patches and mixes them: a convolution as wide as its stride, then a dense layer."""

    def __init__(self, channels: int, height: int, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.patches = nn.Conv2d(channels, 32, kernel_size=7, stride=7)
        self.dense = nn.Linear(32 * (height // 7) * (width // 7), hidden)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        mixed = torch.relu(self.patches(pictures.float() / 255.0))
        return torch.relu(self.dense(mixed.flatten(1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=3)
    updates = parser.parse_args().updates
    torch.manual_seed(0)
    envs = warpzone.MarioVectorEnv(
        8, stage="1-1", size=(28, 35), frame_stack=1, seed=0, autoreset_mode="same_step"
    )
    shape, actions = (4, 28, 35), int(envs.single_action_space.n)
    policy = Policy(ModelConfig(encoder="tiny", hidden=64), shape, actions)
    policy.encoder = Patches(*shape, hidden=64)
    learner = Learner(policy, LearnConfig(minibatches=4), total_updates=updates)
    settings = CollectConfig(num_envs=8, rollout_steps=16)
    collector = make_collector(
        settings, [envs], policy, learner.policy_snapshot, stack=4, device=torch.device("cpu"), seed=0,
        listeners=Listeners(),
    )  # fmt: skip
    collector.start()
    for update in range(1, updates + 1):
        learned = learner.update(collector.collect())
        print(f"update {update}: loss {learned['loss_total']:.4f}, entropy {learned['entropy']:.3f}")
    collector.close()
    envs.close()


if __name__ == "__main__":
    main()
