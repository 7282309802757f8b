"""What NESEnv is in every version of nes-py: an emulator with its buffers. The versions differ in what `step` gives."""

from __future__ import annotations

import itertools
import sys
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.compat.rom import playable
from warpzone.engine._native import CompatEmulator

SCREEN_HEIGHT, SCREEN_WIDTH = 240, 256
SCREEN_SHAPE_24_BIT = SCREEN_HEIGHT, SCREEN_WIDTH, 3
SCREEN_SHAPE_32_BIT = SCREEN_HEIGHT, SCREEN_WIDTH, 4

KEYS = tuple(map(ord, "dasw\r po"))
"""Keyboard keys of right, left, down, up, start, select, B and A: bits 7 to 0 of an action."""


class Emulation:
    """The emulator of an NESEnv. Hooks with the names of nes-py may be overridden."""

    _env: CompatEmulator | None
    spec: Any = None
    reward_range: tuple[float, float]

    def _power_on(self, rom_path: str) -> None:
        self.np_random: Any = np.random.RandomState()
        self._rom_path = rom_path
        self._insert_rom()
        self.viewer: Any = None
        self._has_backup = False
        self.done = True

    def _insert_rom(self) -> None:
        rom = playable(self._rom_path)
        image = rom.raw_data.tobytes()
        self._rom_crc = zlib.crc32(image)
        self._env = CompatEmulator(image, rom.has_battery_backed_ram)
        self._share_buffers()

    def _saved_console(self) -> bytes:
        """The whole console, with a checksum: the emulator trusts what it loads."""
        state: bytes = self._emulator.save()
        return zlib.crc32(state, self._rom_crc).to_bytes(4, "little") + state

    def _load_console(self, saved: bytes) -> None:
        if saved[:4] != zlib.crc32(saved[4:], self._rom_crc).to_bytes(4, "little"):
            raise ValueError("This is not a saved state of this emulator, or it is damaged.")
        self._emulator.load(saved[4:])

    def _share_buffers(self) -> None:
        """The emulator's own memory: what is written there, the game sees, and what the game writes is seen there."""
        self.controllers = [self._controller_buffer(port) for port in range(2)]
        self.screen = self._screen_buffer()
        self.ram = self._ram_buffer()

    @property
    def _emulator(self) -> CompatEmulator:
        if self._env is None:
            raise ValueError("env has already been closed.")
        return self._env

    def _screen_buffer(self) -> NDArray[np.uint8]:
        # Laid out as in nes-py, down to the strides: what makes a copy there makes one here.
        screen: NDArray[np.uint8] = self._emulator.screen
        return screen[:, :, 2::-1] if sys.byteorder == "little" else screen[:, :, 1:]

    def _ram_buffer(self) -> NDArray[np.uint8]:
        return self._emulator.ram

    def _controller_buffer(self, port: int) -> NDArray[np.uint8]:
        return self._emulator.controller(port)

    def _frame_advance(self, action: Any) -> None:
        """Run one frame with these buttons held."""
        self.controllers[0][:] = action
        self._emulator.step()

    def _backup(self) -> None:
        """Keep the state, screen included, for `_restore`. What the controllers hold is not part of it."""
        self._emulator.backup()
        self._has_backup = True

    def _restore(self) -> None:
        self._emulator.restore()

    def _will_reset(self) -> None: ...
    def _did_reset(self) -> None: ...
    def _did_step(self, done: bool) -> None: ...

    def _get_reward(self) -> float:
        return 0

    def _get_done(self) -> bool:
        return False

    def _get_info(self) -> dict[str, Any]:
        return {}

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the environment's generator; the list of seeds used."""
        if seed is None:
            return []
        self.np_random.seed(seed)
        return [seed]

    def _begin(self, seed: int | None) -> NDArray[np.uint8]:
        """An episode from the backup, or from a reset of the console if there is none."""
        self.seed(seed)
        self._will_reset()
        if self._has_backup:
            self._restore()
        else:
            self._emulator.reset()
        self._did_reset()
        self.done = False
        return self.screen

    def _advance(self, action: Any) -> tuple[float, dict[str, Any]]:
        """A step by the hooks. Reward and info are those of the frame; the screen may be of a later one."""
        if self.done:
            raise ValueError("cannot step in a done environment! call `reset`")
        self._frame_advance(action)
        reward = float(self._get_reward())
        self.done = bool(self._get_done())
        info = self._get_info()
        self._did_step(self.done)
        low, high = self.reward_range
        return min(max(reward, low), high), info

    def close(self) -> None:
        """Give the emulator up; a second time is an error."""
        _ = self._emulator
        self._env = None
        if self.viewer is not None:
            self.viewer.close()

    def _show(self) -> None:
        """Put the screen into the environment's window."""
        if self.viewer is None:
            from warpzone.compat.viewer import ImageViewer

            caption = self._rom_path.split("/")[-1] if self.spec is None else self.spec.id
            self.viewer = ImageViewer(caption=caption, height=SCREEN_HEIGHT, width=SCREEN_WIDTH)
        self.viewer.show(self.screen)

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """Sorted keyboard keys to the byte of buttons they press."""
        actions = {}
        for pressed in itertools.product((0, 1), repeat=8):
            byte = int("".join(map(str, pressed)), 2)
            actions[tuple(sorted(itertools.compress(KEYS, pressed)))] = byte
        return actions

    def get_action_meanings(self) -> list[str]:
        return ["NOOP"]

    # The original can't be pickled. This can, in the middle of an episode too; its window stays behind.
    _VIEWS = ("controllers", "screen", "ram", "_env", "viewer")

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name not in self._VIEWS}
        state["emulator"] = None if self._env is None else self._saved_console()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("emulator")
        self.__dict__.update(state)
        self.viewer = None
        self._env = None
        if saved is not None:
            self._insert_rom()
            self._load_console(saved)
