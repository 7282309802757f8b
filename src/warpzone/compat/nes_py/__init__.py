"""nes-py 8, on warpzone's engine."""

from warpzone.compat.nes_py.nes_env import NESEnv

__all__ = ["NESEnv"]
