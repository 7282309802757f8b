"""The interfaces of gym-super-mario-bros and nes-py on warpzone's engine: the same at every step, many times faster.

    import warpzone.compat.gym_super_mario_bros as gym_super_mario_bros
    from warpzone.compat.nes_py.wrappers import JoypadSpace

or, without changing a line of it, `python -m warpzone.compat script.py`.
"""

from __future__ import annotations

from typing import Any

from warpzone.compat.installation import install

__all__ = ["install", "vector"]


def vector(id: str, num_envs: int, **options: Any) -> Any:
    """The native vector of an environment's id; see `warpzone.compat.vectors.MarioVector`."""
    from warpzone.compat.vectors import MarioVector

    return MarioVector(id, num_envs, **options)
