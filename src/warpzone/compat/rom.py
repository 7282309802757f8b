"""The iNES header as nes-py reads it, with its errors, and where gym-super-mario-bros keeps its ROMs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.engine.rom import packaged_file

PLAYED_BY_NES_PY = (0, 1, 2, 3)


class ROM:
    """A cartridge image on disk."""

    _MAGIC = np.frombuffer(b"NES\x1a", dtype=np.uint8)

    def __init__(self, rom_path: str) -> None:
        if not isinstance(rom_path, str):
            raise TypeError("rom_path must be of type: str.")
        if not os.path.exists(rom_path):
            raise ValueError(f"rom_path points to non-existent file: {rom_path}.")
        self.raw_data: NDArray[np.uint8] = np.fromfile(rom_path, dtype=np.uint8)
        if not np.array_equal(self._magic, self._MAGIC):
            raise ValueError("ROM missing magic number in header.")
        if self._zero_fill != 0:
            raise ValueError("ROM header zero fill bytes are not zero.")

    def _bit(self, byte: int, bit: int) -> bool:
        return bool(self.raw_data[byte] >> bit & 1)

    def _bits(self, byte: int) -> str:
        return f"{self.raw_data[byte]:08b}"

    header = property(lambda self: self.raw_data[:16])
    _magic = property(lambda self: self.raw_data[:4])
    _zero_fill = property(lambda self: int(self.raw_data[11:16].sum()))
    flags_6 = property(lambda self: self._bits(6))
    flags_7 = property(lambda self: self._bits(7))
    flags_9 = property(lambda self: self._bits(9))
    flags_10 = property(lambda self: self._bits(10))
    # Sizes in KB.
    prg_rom_size = property(lambda self: 16 * int(self.raw_data[4]))
    chr_rom_size = property(lambda self: 8 * int(self.raw_data[5]))
    prg_ram_size = property(lambda self: 8 * (int(self.raw_data[8]) or 1))
    mapper = property(lambda self: int(self.raw_data[7] & 0xF0) | int(self.raw_data[6] >> 4))
    is_ignore_mirroring = property(lambda self: self._bit(6, 3))
    has_trainer = property(lambda self: self._bit(6, 2))
    has_battery_backed_ram = property(lambda self: self._bit(6, 1))
    is_vertical_mirroring = property(lambda self: self._bit(6, 0))
    has_play_choice_10 = property(lambda self: self._bit(7, 1))
    has_vs_unisystem = property(lambda self: self._bit(7, 0))
    is_pal = property(lambda self: self._bit(9, 0))
    # Where the parts begin and end in the file.
    trainer_rom_start = property(lambda self: 16)
    trainer_rom_stop = property(lambda self: 16 + 512 * self.has_trainer)
    prg_rom_start = property(lambda self: self.trainer_rom_stop)
    prg_rom_stop = property(lambda self: self.prg_rom_start + self.prg_rom_size * 1024)
    chr_rom_start = property(lambda self: self.prg_rom_stop)
    chr_rom_stop = property(lambda self: self.chr_rom_start + self.chr_rom_size * 1024)
    trainer_rom = property(lambda self: self.raw_data[self.trainer_rom_start : self.trainer_rom_stop])
    prg_rom = property(lambda self: self.raw_data[self.prg_rom_start : self.prg_rom_stop])
    chr_rom = property(lambda self: self.raw_data[self.chr_rom_start : self.chr_rom_stop])


def playable(rom_path: str) -> ROM:
    """The ROM, if it can be played; the errors of the original if not."""
    rom = ROM(rom_path)
    if rom.prg_rom_size == 0:
        raise ValueError("ROM has no PRG-ROM banks.")
    if rom.has_trainer:
        raise ValueError("ROM has trainer. trainer is not supported.")
    if rom.is_pal:
        raise ValueError("ROM is PAL. PAL is not supported.")
    if rom.mapper not in PLAYED_BY_NES_PY:
        raise ValueError(f"ROM has an unsupported mapper number {rom.mapper}.")
    if rom.mapper != 0:
        raise ValueError(
            f"ROM has mapper {rom.mapper}: nes-py plays it, warpzone.compat plays mapper 0 only."
        )
    return rom


FILES = {
    (False, "vanilla"): "super-mario-bros.nes",
    (False, "downsample"): "super-mario-bros-downsample.nes",
    (False, "pixel"): "super-mario-bros-pixel.nes",
    (False, "rectangle"): "super-mario-bros-rectangle.nes",
    (True, "vanilla"): "super-mario-bros-2.nes",
    (True, "downsample"): "super-mario-bros-2-downsample.nes",
}
"""By whether it is the Lost Levels, and by ROM mode."""


def rom_path(lost_levels: bool, rom_mode: str) -> str:
    """The path of the image inside the installed gym-super-mario-bros."""
    if not isinstance(lost_levels, bool):
        raise TypeError("lost_levels must be of type: bool")
    name = FILES.get((lost_levels, rom_mode))
    if name is None:
        raise ValueError(f"rom_mode ({rom_mode}) not supported!")
    return str(packaged_file(name))


def decode_target(target: Any, lost_levels: bool) -> tuple[int | None, int | None, int | None]:
    """World, stage and area of a target, each None without one."""
    if not isinstance(lost_levels, bool):
        raise TypeError("lost_levels must be of type: bool")
    if target is None:
        return None, None, None
    if not isinstance(target, tuple):
        raise TypeError("target must be  of type tuple")
    world, stage = target
    worlds = 12 if lost_levels else 8
    if not isinstance(world, int):
        raise TypeError("target_world must be of type: int")
    if not 1 <= world <= worlds:
        raise ValueError(f"target_world must be in {{1, ..., {worlds}}}")
    if not isinstance(stage, int):
        raise TypeError("target_stage must be of type: int")
    if not 1 <= stage <= 4:
        raise ValueError("target_stage must be in {1, ..., 4}")
    if lost_levels and world >= 5:
        raise ValueError(f"lost levels worlds {set(range(5, 13))} not supported")
    # Where a world has an entrance scene of its own, areas are counted one further from stage 2 on.
    scenes = {1, 3} if lost_levels else {1, 2, 4, 7}
    return world, stage, stage + (world in scenes and stage >= 2)
