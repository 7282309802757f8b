"""Wrappers of nes-py environments."""

from warpzone.compat.nes_py.wrappers.joypad_space import JoypadSpace

__all__ = ["JoypadSpace"]
