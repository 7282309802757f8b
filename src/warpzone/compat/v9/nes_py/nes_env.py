"""An environment of any mapper-0 ROM, with Gymnasium's interface."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import seeding
from numpy.typing import NDArray

from warpzone.compat.emulation import (
    SCREEN_HEIGHT,
    SCREEN_SHAPE_24_BIT,
    SCREEN_SHAPE_32_BIT,
    SCREEN_WIDTH,
    Emulation,
)

Step = tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]


class NESEnv(Emulation, gym.Env[NDArray[np.uint8], np.int64]):
    """`reset()` gives a frame and info, `step(byte)` five values."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "human"], "render_fps": 60}  # type: ignore[misc]
    reward_range = (-float("inf"), float("inf"))
    observation_space = Box(low=0, high=255, shape=SCREEN_SHAPE_24_BIT, dtype=np.uint8)
    action_space = Discrete(256)

    def __init__(self, rom_path: str, render_mode: str | None = None) -> None:
        self._set_render_mode(render_mode)
        self._power_on(rom_path)

    def _power_on(self, rom_path: str) -> None:
        super()._power_on(rom_path)
        self._np_random = None  # Gymnasium's, made when it is asked for

    def _set_render_mode(self, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            modes = ", ".join(map(repr, self.metadata["render_modes"]))
            raise NotImplementedError(f"valid render modes are: {modes}")
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin an episode."""
        gym.Env.reset(self, seed=seed)
        return self._begin(None), self._get_info()

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the environment's generator; the list of seeds used."""
        if seed is not None:
            warnings.warn(
                "NESEnv.seed() is deprecated; use reset(seed=...) instead.", DeprecationWarning, stacklevel=2
            )
            self._np_random, self._np_random_seed = seeding.np_random(seed)
        return [self.np_random_seed]

    def dump_state(self) -> Any:
        """The console's state, for `load_state`."""
        return self._saved_console()

    def load_state(self, snapshot: Any) -> None:
        """Resume from a state of `dump_state`."""
        self._load_console(snapshot)
        self.done = False

    def _get_terminated(self) -> bool:
        return self._get_done()

    def _get_truncated(self) -> bool:
        return False

    def step(self, action: Any) -> Step:
        """Run a frame with the buttons of `action`, a byte. The frame given is the screen itself, not a copy."""
        if self.done:
            raise ValueError("cannot step in a done environment! call `reset`")
        self._frame_advance(action)
        reward = float(self._get_reward())
        terminated, truncated = bool(self._get_terminated()), bool(self._get_truncated())
        self.done = terminated or truncated
        info = self._get_info()
        self._did_step(self.done)
        low, high = self.reward_range
        return self.screen, min(max(reward, low), high), terminated, truncated, info

    def render(self) -> Any:
        """The screen with "rgb_array"; with "human" it is shown in a window."""
        if self.render_mode == "human":
            self._show()
            return None
        return self.screen if self.render_mode == "rgb_array" else None


__all__ = ["SCREEN_HEIGHT", "SCREEN_SHAPE_24_BIT", "SCREEN_SHAPE_32_BIT", "SCREEN_WIDTH", "NESEnv"]
