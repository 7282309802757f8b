"""Where the ROMs are."""

from warpzone.compat.rom import decode_target, rom_path

__all__ = ["decode_target", "rom_path"]
