"""World, stage and area of a target."""

from warpzone.compat.rom import decode_target

__all__ = ["decode_target"]
