"""Emulators for tests: a tiny game in plain Python, and ones that fail at every stage of a start."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.envs.nes_py.emulators import Log
from warpzone.envs.stages import parse_stage

RIGHT = 128


class ToyEmulator:
    """RAM in which the player walks one pixel a frame while right is held, and falls into a pit at `pit`."""

    info: Mapping[str, Any] = {}

    def __init__(self, pit: int = 100_000) -> None:
        self.ram = np.zeros(0x800, np.uint8)
        self.screen = np.zeros((240, 256, 3), np.uint8)
        self.frames = 0
        self._pit = pit

    def begin(self, stage: str) -> None:
        world, number = parse_stage(stage)
        self.ram[:] = 0
        self.ram[0x075F], self.ram[0x075C], self.ram[0x000E], self.ram[0xB5] = world - 1, number - 1, 8, 1
        self.ram[0x07F8] = 4
        self.frames = 0
        self._move(40)

    def play(self, buttons: int) -> None:
        self.frames += 1
        x = int(self.ram[0x6D]) * 256 + int(self.ram[0x86]) + (1 if buttons & RIGHT else 0)
        self._move(x)
        if x >= self._pit:
            self.ram[0x000E] = 0x0B

    def skip_scenes(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _move(self, x: int) -> None:
        self.ram[0x6D], self.ram[0x86] = x >> 8, x & 255
        self.screen[:] = x & 255


@dataclass(frozen=True)
class Toy:
    """Makes ToyEmulators."""

    pit: int = 100_000

    def __call__(self, log: Log) -> ToyEmulator:
        for stage in ("patch", "import", "make"):
            log(stage)
        return ToyEmulator(self.pit)


@dataclass(frozen=True)
class Faulty:
    """Fails in a stage of the start: `error`, `missing_rom`, `crash`, `hang` or `slow`, the first `times` times."""

    at: str
    fault: str
    counter: str
    times: int = 1_000_000

    def __call__(self, log: Log) -> ToyEmulator:
        for stage in ("patch", "import", "make"):
            log(stage)
            if stage == self.at and self._count() <= self.times:
                self._fail()
        return ToyEmulator()

    def _count(self) -> int:
        """How often this was called, over all processes."""
        with open(self.counter, "a") as file:
            file.write("x")
        return Path(self.counter).stat().st_size

    def _fail(self) -> None:
        if self.fault == "error":
            import package_that_is_not_installed  # noqa: F401
        elif self.fault == "missing_rom":
            raise ValueError("rom_path points to non-existent file: mario.nes.")
        elif self.fault == "crash":
            os.abort()
        elif self.fault == "hang":
            while True:
                time.sleep(0.01)
        elif self.fault == "slow":
            time.sleep(0.5)


@dataclass(frozen=True)
class StuckInPlay:
    """An emulator that hangs for good in a frame once the player has come to `x`."""

    x: int

    def __call__(self, log: Log) -> ToyEmulator:
        emulator = Toy()(log)
        play = emulator.play

        def hang_at(buttons: int) -> None:
            play(buttons)
            while int(emulator.ram[0x86]) >= self.x:
                time.sleep(0.01)

        emulator.play = hang_at  # type: ignore[method-assign]
        return emulator
