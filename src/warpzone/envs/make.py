"""Environments from a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from warpzone.engine.rom import rom as find_rom
from warpzone.envs.config import ViewConfig
from warpzone.envs.level_pool import named_levels
from warpzone.envs.vector import MarioVectorEnv


def make_envs(
    view: ViewConfig, num_envs: int, stages: Sequence[str], *, threads: int = 0, seed: int = 0, **options: Any
) -> MarioVectorEnv:
    """A vector of environments with this view. A stage may also be "levels-0-199@0.3" or "levels@0.3"."""
    rom = options.get("rom")
    generated = [name for name in stages if "@" in name]
    found = {name: named_levels(name, rom if isinstance(rom, bytes) else find_rom(rom)) for name in generated}
    levels = [level for named in found.values() for level in named or ()]
    if levels:
        options = {**options, "levels": levels}
    plain = [name for name in stages if not found.get(name)]
    return MarioVectorEnv(
        num_envs, stages=plain or None, threads=threads, seed=seed, **{**asdict(view), **options}
    )
