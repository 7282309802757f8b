"""Where the ROMs are."""

from warpzone.compat.gym_super_mario_bros._roms.decode_target import decode_target
from warpzone.compat.gym_super_mario_bros._roms.rom_path import rom_path

__all__ = ["decode_target", "rom_path"]
