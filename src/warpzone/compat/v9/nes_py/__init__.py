"""nes-py 9, on warpzone's engine."""

from warpzone.compat.v9.nes_py.nes_env import NESEnv

__all__ = ["NESEnv"]
