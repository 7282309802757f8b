"""The player's x position for backends that do not report it: read from RAM until that keeps failing."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.nes_py.config import BackendConfig


class PositionReader:
    """Gives `x_pos`: what the backend reports, else two bytes of RAM, else the last known one.

    RAM that is missing, too short or not made of bytes is a failure. At the limit the fallback is switched off with
    one warning, and `failures` keeps the count.
    """

    def __init__(self, config: BackendConfig) -> None:
        self.parses_ram = config.enable_ram_x_parse
        self.failures = 0
        self._addresses = config.ram_x_addresses()
        self._limit = config.ram_x_failure_limit
        self._last = 0

    def __call__(self, info: Mapping[str, Any], ram: NDArray[np.uint8] | None) -> int:
        if "x_pos" in info:
            self._last = _signed(int(info["x_pos"]))
        elif self.parses_ram:
            try:
                if ram is None:
                    raise ValueError("the backend gives no RAM")
                self._last = _signed(
                    int.from_bytes([int(ram[address]) for address in self._addresses], "big")
                )
            except (IndexError, TypeError, ValueError) as error:
                self._fail(error)
        return self._last

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        if self.failures < self._limit:
            return
        self.parses_ram = False
        warnings.warn(
            f"[env][warn] x position could not be read from RAM {self.failures} times ({error}): the fallback is "
            "switched off and there will be no reward for distance; see --ram-x-high-addr and --ram-x-low-addr.",
            RuntimeWarning,
            stacklevel=3,
        )


def _signed(x: int) -> int:
    """Mazes move the player back by four pages, which can be left of page 0."""
    return x - 0x10000 if x >= 0x8000 else x
