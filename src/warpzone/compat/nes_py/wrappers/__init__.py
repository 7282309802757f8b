"""Wrappers of nes-py environments."""

from warpzone.compat.nes_py.wrappers.joypad_space import JoypadSpace

BinarySpaceToDiscreteSpaceEnv = JoypadSpace
"""Its name before nes-py 8, in many scripts still."""

__all__ = ["BinarySpaceToDiscreteSpaceEnv", "JoypadSpace"]
