"""One console, driven by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpzone.engine import _native
from warpzone.errors import ConfigError


class Machine:
    """A NES with a mapper-0 cartridge, at power-on.

    `step` runs whole frames, from one vertical blank to the next. Buttons are bits 7..0: right left down up start
    select B A, as in nes-py and .fm2 movies. Memory views (`ram`, `wram`) are live and writable.
    """

    def __init__(self, rom: bytes, region: str = "ntsc") -> None:
        if region not in ("ntsc", "pal"):
            raise ConfigError(f"Unknown region {region!r}: choose 'ntsc' or 'pal'.")
        self.region = region
        self._console = _native.Machine(bytes(rom), region == "pal")

    def step(
        self,
        buttons: int = 0,
        frames: int = 1,
        render: bool = True,
        *,
        buttons2: int = 0,
        skip_idle_loops: bool = True,
        translate: bool = True,
    ) -> None:
        """Run `frames` frames with the buttons held; `render` draws them. The shortcuts change only speed."""
        self._console.step(int(buttons), int(frames), render, int(buttons2), skip_idle_loops, translate)

    @property
    def ram(self) -> NDArray[np.uint8]:
        """The 2 KB of work RAM at $0000."""
        return self._console.ram

    @property
    def wram(self) -> NDArray[np.uint8]:
        """The cartridge's 8 KB of RAM at $6000."""
        return self._console.wram

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The last frame that was drawn, uint8 [240, 256, 3]."""
        return self._console.screen

    @property
    def frame(self) -> int:
        """Frames completed since power-on."""
        return self._console.frame

    @property
    def lagged(self) -> bool:
        """Whether the game did not read the controllers in the last frame."""
        return self._console.lagged

    @property
    def cycles(self) -> int:
        """CPU cycles since power-on."""
        return self._console.cycles

    @property
    def jammed(self) -> bool:
        """Whether the CPU met an instruction that stops it for good."""
        return self._console.jammed

    def peek(self, addr: int) -> int:
        """The byte at a CPU address, without the side effects of a read."""
        return self._console.peek(int(addr))

    def save(self) -> bytes:
        """The console's whole state."""
        return self._console.save()

    def load(self, blob: bytes) -> None:
        """Go back to a saved state of the same game."""
        self._console.load(bytes(blob))

    def reset(self) -> None:
        """Press the reset button."""
        self._console.reset()
