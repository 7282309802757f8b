"""Another stage each episode, with the interface of gym-super-mario-bros 7."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.compat.gym7 import Env
from warpzone.compat.gym_super_mario_bros.smb_env import SuperMarioBrosEnv
from warpzone.compat.nes_py.nes_env import Step
from warpzone.compat.random_stages import RandomStages


class SuperMarioBrosRandomStagesEnv(RandomStages, Env):  # type: ignore[misc]
    """`stages`: those to choose from, as ["1-1", "4-2"]; all of them if None."""

    metadata = SuperMarioBrosEnv.metadata
    reward_range = SuperMarioBrosEnv.reward_range
    observation_space = SuperMarioBrosEnv.observation_space
    action_space = SuperMarioBrosEnv.action_space
    np_random: Any = None

    def __init__(self, rom_mode: str = "vanilla", stages: Sequence[str] | None = None) -> None:
        self._make_stages(partial(SuperMarioBrosEnv, rom_mode=rom_mode), stages)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None, return_info: bool | None = None
    ) -> NDArray[np.uint8]:
        """Begin an episode on a stage drawn from `stages`, or from `options["stages"]`."""
        frame: NDArray[np.uint8] = self._choose(seed, options).reset(seed=seed, options=options)
        return frame

    def step(self, action: Any) -> Step:
        """Run a frame with the buttons of `action`, a byte."""
        step: Step = self.env.step(action)
        return step

    def render(self, mode: str = "human") -> NDArray[np.uint8] | None:
        """Show the screen in a window ("human") or give it ("rgb_array")."""
        frame: NDArray[np.uint8] | None = self.env.render(mode=mode)
        return frame


__all__ = ["SuperMarioBrosRandomStagesEnv"]
