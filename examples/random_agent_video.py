"""A video of random play, which shows what an agent has to learn.

python examples/random_agent_video.py random.mp4 --decisions 150
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import warpzone
from warpzone.watch.video import write_video


def play(decisions: int, stage: str) -> Iterator[np.ndarray]:
    """Every frame of randomly sampled decisions, biased to the right."""
    envs = warpzone.MarioVectorEnv(1, stage=stage, frame_skip=1, seed=0)
    envs.reset(seed=0)
    draw = np.random.default_rng(0)
    right = [i for i, name in enumerate(envs.action_meanings) if name.startswith("RIGHT")]
    for _ in range(decisions):
        action = np.array([draw.choice(right)])
        for _ in range(4):
            envs.step(action)
            yield envs.screen(0)
    envs.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path("random.mp4"))
    parser.add_argument("--decisions", type=int, default=300)
    parser.add_argument("--stage", default="1-1")
    arguments = parser.parse_args()
    print("wrote", write_video(play(arguments.decisions, arguments.stage), arguments.out))


if __name__ == "__main__":
    main()
