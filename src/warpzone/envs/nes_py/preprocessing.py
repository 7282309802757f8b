"""From a screen to an observation, step by step: the slow reference of the engine's fused preprocessing."""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.config import HUD_ROWS, SCREEN_HEIGHT, SCREEN_WIDTH, ViewConfig

Screen = NDArray[np.uint8]
_CHANNEL = {"r": 0, "g": 1, "b": 2}


def luma(screen: Screen) -> NDArray[np.uint8]:
    """Grey as image libraries compute it (ITU-R BT.601), in whole numbers."""
    r, g, b = (screen[..., i].astype(np.int32) for i in range(3))
    return ((r * 4899 + g * 9617 + b * 1868 + 8192) >> 14).astype(np.uint8)


def area_weights(size_in: int, size_out: int) -> NDArray[np.float64]:
    """How much of each input cell lies in each output cell [out, in], in whole units; all rows have the same sum."""
    common = gcd(size_in, size_out)
    cell_out, cell_in = size_in // common, size_out // common
    low, left = np.arange(size_out)[:, None] * cell_out, np.arange(size_in) * cell_in
    shared = np.minimum(low + cell_out, left + cell_in) - np.maximum(low, left)
    weights: NDArray[np.float64] = np.maximum(shared, 0).astype(np.float64)
    return weights


class Preprocessor:
    """Makes the frame that a view asks for: channel, crop, exact area average rounded half up."""

    def __init__(self, view: ViewConfig) -> None:
        self.top = HUD_ROWS if view.crop_hud else 0
        self.channels = view.channels
        self._rows = area_weights(SCREEN_HEIGHT - self.top, view.size[0])
        self._columns = area_weights(SCREEN_WIDTH, view.size[1]).T
        self._total = self._rows[0].sum() * self._columns[:, 0].sum()

    def __call__(self, screen: Screen, before: Screen | None = None) -> NDArray[np.uint8]:
        """Channels x height x width. With `before`, each pixel is the brighter of the two screens."""
        planes = self._planes(screen)
        if before is not None:
            planes = np.maximum(planes, self._planes(before))
        # Sums of whole numbers below 2^53: exact in float64, which NumPy multiplies much faster than integers.
        sums = self._rows @ planes[:, self.top :].astype(np.float64) @ self._columns
        frame: NDArray[np.uint8] = ((sums + self._total // 2) // self._total).astype(np.uint8)
        return frame

    def _planes(self, screen: Screen) -> NDArray[np.uint8]:
        return np.stack([luma(screen) if c == "y" else screen[..., _CHANNEL[c]] for c in self.channels])


def with_buttons(frame: NDArray[np.uint8], held: int) -> NDArray[np.uint8]:
    """A frame [C, H, W] with eight blocks over its top, from A to RIGHT: white where the button is held."""
    rows = max(2, frame.shape[1] // 16)
    limits = np.arange(9) * frame.shape[2] // 8
    row = np.repeat(np.array([255 * (held >> button & 1) for button in range(8)], np.uint8), np.diff(limits))
    drawn = frame.copy()
    drawn[:, :rows] = row
    return drawn
