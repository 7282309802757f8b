"""The iNES header."""

from warpzone.compat.rom import ROM

__all__ = ["ROM"]
