"""Super Mario Bros and the Lost Levels, with Gymnasium's interface and the rules of version 9."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from warpzone.compat.mario import Mario
from warpzone.compat.random_stages import RandomStages
from warpzone.compat.v9.gym_super_mario_bros.rules import ShapedMario
from warpzone.compat.v9.nes_py.nes_env import NESEnv, Step


class SuperMarioBrosEnv(ShapedMario, NESEnv):
    """The whole game, or the stage `target=(world, stage)`. Version 9 has no `rom_mode`: its ROMs are vanilla."""

    reward_range = Mario.reward_range

    def __init__(
        self,
        lost_levels: bool = False,
        target: tuple[int, int] | None = None,
        render_mode: str | None = None,
        rom_mode: str = "vanilla",
    ) -> None:
        self._set_render_mode(render_mode)
        self._lost_levels, self._rom_mode = lost_levels, rom_mode
        self._start_game(rom_mode, lost_levels, target)


class SuperMarioBrosRandomStagesEnv(RandomStages, gym.Env[NDArray[np.uint8], np.int64]):
    """`stages`: those to choose from, as ["1-1", "4-2"]; all of them if None."""

    metadata = NESEnv.metadata
    reward_range = Mario.reward_range
    observation_space = NESEnv.observation_space
    action_space = NESEnv.action_space
    np_random: Any = None

    def __init__(
        self, rom_mode: str = "vanilla", stages: Sequence[str] | None = None, render_mode: str | None = None
    ) -> None:
        self.render_mode = render_mode
        self._make_stages(partial(SuperMarioBrosEnv, rom_mode=rom_mode, render_mode=render_mode), stages)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin an episode on a stage drawn from `stages`, or from `options["stages"]`."""
        frame, info = self._choose(seed, options).reset(seed=seed)
        return frame, info

    def step(self, action: Any) -> Step:
        """Run a frame with the buttons of `action`, a byte."""
        step: Step = self.env.step(action)
        return step

    def render(self) -> Any:
        """The screen with "rgb_array"; with "human" it is shown in a window."""
        return self.env.render()


__all__ = ["SuperMarioBrosEnv", "SuperMarioBrosRandomStagesEnv"]
