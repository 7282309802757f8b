"""Wrappers of nes-py environments."""

from warpzone.compat.v9.nes_py.wrappers.joypad_space import JoypadSpace

__all__ = ["JoypadSpace"]
