"""Imitating the trail where nothing succeeds yet.

The reverse curriculum needs a success now and then from just before the first cleared moment. Where the way on takes a
turn and a jump that no episode finds, the trail shows them: it is imitated there until the stage is cleared from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.envs.actions import action_buttons
from warpzone.envs.config import ViewConfig
from warpzone.starts.reverse_curriculum import ReverseCurriculum

MOMENTS = 128
"""Moments in a gradient step."""


class TrailDemonstration:
    """Demonstrates what trails do just before their first cleared moments, as far as the agent has these actions."""

    def __init__(self, curriculum: ReverseCurriculum, view: ViewConfig, steps: int, seed: int) -> None:
        self.curriculum, self.view, self.steps, self.seed = curriculum, view, steps, seed
        self.actions = {buttons: i for i, buttons in enumerate(action_buttons(view.action_type))}

    def __call__(self, update: int) -> Iterator[tuple[Tensor, Tensor]]:
        if not self.steps:
            return
        random = np.random.default_rng([self.seed, 0x1417, update])
        before = [
            [moment for moment in moments if moment.buttons in self.actions]
            for moments in self.curriculum.to_imitate()
        ]
        before = [moments for moments in before if moments]
        for _ in range(self.steps if before else 0):
            trails = [before[i] for i in random.integers(len(before), size=MOMENTS)]
            chosen = [moments[random.integers(len(moments))] for moments in trails]
            seen = [
                stacked(m.frames, int(random.integers(len(m.frames))), self.view.frame_stack) for m in chosen
            ]
            actions = [self.actions[m.buttons] for m in chosen]
            yield torch.from_numpy(np.stack(seen)), torch.tensor(actions)


def stacked(frames: Sequence[NDArray[np.uint8]], age: int, stack: int) -> NDArray[np.uint8]:
    """What the agent sees [stack * C, H, W] at the last of the frames when its episode began `age` decisions ago."""
    seen = frames[len(frames) - 1 - age :][-stack:]
    return np.concatenate([seen[0]] * (stack - len(seen)) + list(seen))
