"""An environment of any mapper-0 ROM, with the interface of nes-py 8."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from warpzone.compat.emulation import (
    SCREEN_HEIGHT,
    SCREEN_SHAPE_24_BIT,
    SCREEN_SHAPE_32_BIT,
    SCREEN_WIDTH,
    Emulation,
)
from warpzone.compat.gym7 import Box, Discrete, Env
from warpzone.compat.rom import ROM
from warpzone.compat.viewer import ImageViewer

Step = tuple[NDArray[np.uint8], float, bool, dict[str, Any]]


class NESEnv(Emulation, Env):  # type: ignore[misc]
    """`reset()` gives a frame; `step(byte)` gives the next one, a reward, whether it is over, and info."""

    metadata: ClassVar[dict[str, Any]] = {
        "render.modes": ["rgb_array", "human"],
        "video.frames_per_second": 60,
    }
    reward_range = (-float("inf"), float("inf"))
    observation_space = Box(low=0, high=255, shape=SCREEN_SHAPE_24_BIT, dtype=np.uint8)
    action_space = Discrete(256)
    np_random: Any = None

    def __init__(self, rom_path: str) -> None:
        self._power_on(rom_path)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None, return_info: bool | None = None
    ) -> NDArray[np.uint8]:
        """Begin an episode."""
        return self._begin(seed)

    def step(self, action: Any) -> Step:
        """Run a frame with the buttons of `action`, a byte. The frame given is the screen itself, not a copy."""
        reward, info = self._advance(action)
        return self.screen, reward, self.done, info

    def render(self, mode: str = "human") -> NDArray[np.uint8] | None:
        """Show the screen in a window ("human") or give it ("rgb_array")."""
        if mode == "rgb_array":
            return self.screen
        if mode != "human":
            modes = ", ".join(map(repr, self.metadata["render.modes"]))
            raise NotImplementedError(f"valid render modes are: {modes}")
        self._show()
        return None


__all__ = [
    "ROM",
    "SCREEN_HEIGHT",
    "SCREEN_SHAPE_24_BIT",
    "SCREEN_SHAPE_32_BIT",
    "SCREEN_WIDTH",
    "ImageViewer",
    "NESEnv",
]
