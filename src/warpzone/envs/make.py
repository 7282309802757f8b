"""Environments from a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from warpzone.envs.config import ViewConfig
from warpzone.envs.vector import MarioVectorEnv


def make_envs(
    view: ViewConfig, num_envs: int, stages: Sequence[str], *, threads: int = 0, seed: int = 0, **options: Any
) -> MarioVectorEnv:
    """A vector of environments with this view."""
    return MarioVectorEnv(
        num_envs, stages=list(stages), threads=threads, seed=seed, **{**asdict(view), **options}
    )
