"""Whether a level can be finished: a search that plays it."""

from __future__ import annotations

from dataclasses import dataclass

from warpzone.levels.format import LevelData
from warpzone.starts.exploration import Explorer

DECISIONS = 80_000
"""How long the search may last by default; most levels that can be finished need a quarter of that."""


@dataclass(frozen=True)
class Solution:
    """What the search found."""

    actions: tuple[int, ...] | None
    """The decisions that finish the level (of the search's action set), or None."""
    tried: int
    """Decisions that the search played."""
    furthest: int
    """Furthest position that it reached, in pixels."""

    @property
    def solvable(self) -> bool:
        return self.actions is not None


def solve(level: LevelData, *, decisions: int = DECISIONS, seed: int = 0, rom: str | None = None) -> Solution:
    """Search for a solution, with as many decisions as given. The same arguments find the same."""
    explorer = Explorer(level, seed=seed, rom=rom, forward=True)
    try:
        way = None
        while way is None and explorer.tried < decisions:
            way = explorer.step()
        return Solution(tuple(way) if way is not None else None, explorer.tried, explorer.furthest)
    finally:
        explorer.close()
