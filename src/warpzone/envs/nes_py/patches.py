"""What nes-py 8 and gym-super-mario-bros 7 need to run beside NumPy 2, patched in memory, and nothing for others.

Both multiply and add RAM bytes (`numpy.uint8`) as if they were whole numbers. NumPy 2 keeps the type of the byte:
sizes of the ROM no longer fit (OverflowError), positions wrap silently. Only the sums are widened. `env.ram` must stay
a view of the emulator's own memory: a copy with a wider dtype would never change, and the package waits in a loop
for the game's clock to start (see docs/async-hang.md).
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from importlib import metadata
from typing import Any

import numpy as np

_FIRST_SOUND = 9
"""From this major version on both packages are Gymnasium environments that read bytes as whole numbers."""


def major(version: str) -> int:
    """The first number of a version."""
    return int(version.split(".")[0])


def installed(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def needs_patches(nes_py: str, numpy: str) -> bool:
    """Whether this nes-py overflows beside this NumPy."""
    return major(nes_py) < _FIRST_SOUND and major(numpy) >= 2


@contextmanager
def quiet_gym() -> Iterator[None]:
    """Silence what the unmaintained `gym` says on import, to warnings and straight to stderr."""
    level = logging.getLogger("gym").level
    logging.getLogger("gym").setLevel(logging.ERROR)
    said = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stderr(said):
            warnings.simplefilter("ignore")
            yield
    except BaseException:
        # Something went wrong: now what was said may matter.
        warnings.warn(said.getvalue(), stacklevel=3) if said.getvalue() else None
        raise
    finally:
        logging.getLogger("gym").setLevel(level)


def patch_nes_py() -> bool:
    """Patch the installed packages if their versions need it; true if they do. Twice is the same as once."""
    version = installed("nes-py")
    if version is None or not needs_patches(version, np.__version__):
        return False
    with quiet_gym():
        import gym_super_mario_bros.smb_env as smb_env
        from nes_py import _rom
    if getattr(_rom.ROM, "_warpzone_patched", False):
        return True
    # 16 KB times a byte is no byte.
    _rom.ROM.prg_rom_size = property(lambda self: 16 * int(self.header[4]))
    _rom.ROM.chr_rom_size = property(lambda self: 8 * int(self.header[5]))
    _rom.ROM.prg_ram_size = property(lambda self: 8 * (int(self.header[8]) or 1))
    _widen_positions(smb_env.SuperMarioBrosEnv)
    _rom.ROM._warpzone_patched = True
    return True


def _widen_positions(env: Any) -> None:
    def read(sum_of: Callable[[Callable[[int], int]], int]) -> property:
        return property(lambda self: sum_of(lambda address: int(self.ram[address])))

    env._level = read(lambda ram: ram(0x075F) * 4 + ram(0x075C))
    env._world = read(lambda ram: ram(0x075F) + 1)
    env._stage = read(lambda ram: ram(0x075C) + 1)
    env._area = read(lambda ram: ram(0x0760) + 1)
    env._x_position = read(lambda ram: ram(0x6D) * 0x100 + ram(0x86))
    env._left_x_position = read(lambda ram: (ram(0x86) - ram(0x071C)) % 256)
    env._life = read(lambda ram: ram(0x075A))
    env._y_pixel = read(lambda ram: ram(0x03B8))
    env._y_viewport = read(lambda ram: ram(0x00B5))
    env._player_state = read(lambda ram: ram(0x000E))
