"""Where the ROMs are."""

from warpzone.compat.rom import rom_path

__all__ = ["rom_path"]
