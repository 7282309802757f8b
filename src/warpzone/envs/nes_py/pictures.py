"""From a screen to a picture, step by step: the slow reference of the engine's fused preprocessing."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.config import HUD_ROWS, SCREEN_HEIGHT, SCREEN_WIDTH, ViewConfig

Screen = NDArray[np.uint8]
_CHANNEL = {"r": 0, "g": 1, "b": 2}


def luma(screen: Screen) -> NDArray[np.uint8]:
    """Grey as image libraries reckon it (ITU-R BT.601), in whole numbers."""
    r, g, b = (screen[..., i].astype(np.int32) for i in range(3))
    return ((r * 4899 + g * 9617 + b * 1868 + 8192) >> 14).astype(np.uint8)


@dataclass(frozen=True)
class Axis:
    """How input cells spread over output cells along one axis: output j is the weighted sum of its taps."""

    indices: NDArray[np.intp]
    """Input cells [taps, out]."""
    weights: NDArray[np.int32]
    """Whole-numbered weights [taps, out]."""
    total: int
    """What the weights of one output cell add up to."""


def area_axis(size_in: int, size_out: int) -> Axis:
    """The area each input cell shares with each output cell, on a ruler where both have whole lengths."""
    common = gcd(size_in, size_out)
    cell_out, cell_in = size_in // common, size_out // common
    left = np.arange(size_in) * cell_in
    low = np.arange(size_out)[:, None] * cell_out
    shared = np.maximum(np.minimum(low + cell_out, left + cell_in) - np.maximum(low, left), 0)
    taps = int((shared > 0).sum(1).max())
    first = (shared > 0).argmax(1)
    indices = np.minimum(first + np.arange(taps)[:, None], size_in - 1)
    weights = np.where(first + np.arange(taps)[:, None] < size_in, shared[np.arange(size_out), indices], 0)
    return Axis(indices, weights.astype(np.int32), cell_out)


class Pictures:
    """Makes the picture that a view asks for: channel, crop, exact area average rounded half up."""

    def __init__(self, view: ViewConfig) -> None:
        self.top = HUD_ROWS if view.crop_hud else 0
        self.channels = view.channels
        self._rows = area_axis(SCREEN_HEIGHT - self.top, view.size[0])
        self._columns = area_axis(SCREEN_WIDTH, view.size[1])

    def __call__(self, screen: Screen, before: Screen | None = None) -> NDArray[np.uint8]:
        """Channels x height x width. With `before`, each pixel is the brighter of the two screens."""
        planes = []
        for channel in self.channels:
            plane = self._channel(screen, channel)
            if before is not None:
                plane = np.maximum(plane, self._channel(before, channel))
            planes.append(self._shrink(plane[self.top :].astype(np.int32)))
        return np.stack(planes)

    def _shrink(self, plane: NDArray[np.int32]) -> NDArray[np.uint8]:
        rows, columns = self._rows, self._columns
        lines = np.zeros((rows.indices.shape[1], plane.shape[1]), np.int32)
        for index, weight in zip(rows.indices, rows.weights, strict=True):
            lines += plane[index] * weight[:, None]
        sums = np.zeros((lines.shape[0], columns.indices.shape[1]), np.int32)
        for index, weight in zip(columns.indices, columns.weights, strict=True):
            sums += lines[:, index] * weight
        total = rows.total * columns.total
        return ((sums + total // 2) // total).astype(np.uint8)

    def _channel(self, screen: Screen, channel: str) -> NDArray[np.uint8]:
        return luma(screen) if channel == "y" else screen[..., _CHANNEL[channel]]
