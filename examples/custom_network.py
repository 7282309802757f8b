"""A custom encoder: train it, load it again, evaluate it and record a video.

python examples/custom_network.py --updates 50
warpzone train --run-name patches --stages 1-1 --encoder examples/custom_network.py:Patches
warpzone eval --checkpoint patches --trust-code
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import warpzone


class Patches(nn.Module):
    """Splits the frame into patches and mixes them: a convolution as wide as its stride, then a dense layer.

    An encoder is constructed with (channels, height, width) and maps uint8 [B, channels, height, width] to floats
    [B, features]. The trainer adds memory, policy and value heads.
    """

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, 32, kernel_size=6, stride=6)
        self.dense = nn.Linear(32 * (height // 6) * (width // 6), 128)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        mixed = torch.relu(self.patches(frames.float() / 255.0))
        return torch.relu(self.dense(mixed.flatten(1)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--episodes", type=int, default=20)
    arguments = parser.parse_args()
    outcome = warpzone.train(
        "1-1",
        preset="cpu",
        device="cpu",
        run_name="patches",
        encoder=Patches,
        total_updates=arguments.updates,
    )
    agent = warpzone.load_agent("patches", encoder=Patches)
    for result in agent.evaluate("1-1", episodes=arguments.episodes):
        print(f"{result.stage} after {outcome.progress.update} updates: {result}")
    video = agent.record("1-1", "patches.mp4", tries=1)
    print(f"{video.path}: {video.verdict}")


if __name__ == "__main__":
    main()
