"""Which levels to play again: those cleared about half of the time teach most.

Prioritised level replay (https://arxiv.org/abs/2010.03934) with the score of https://arxiv.org/abs/2408.15099.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MEMORY = 32.0
"""Episodes of a level that count; older ones fade."""
KNOWN = 8.0
"""Episodes after which a level may be replaced for what they showed."""
ANY = 0.5
"""Share of the episodes that play any of the levels, each as often as the others."""


class LevelReplay:
    """Clear rates of the levels that are there, by slot. An episode that outlasts its level counts for the next one
    there, which has forgotten it 32 episodes later."""

    def __init__(self, slots: int) -> None:
        self._episodes, self._clears = np.zeros((2, slots))
        self.shares = np.full(slots, 1.0 / slots)
        """How often each level is to be played, as of the last `weigh`."""

    def count(self, slots: NDArray[Any], cleared: NDArray[Any]) -> None:
        """Episodes that ended."""
        for slot, clear in zip(slots.tolist(), cleared.tolist(), strict=True):
            keep = 1.0 - 1.0 / MEMORY
            self._episodes[slot] = keep * self._episodes[slot] + 1.0
            self._clears[slot] = keep * self._clears[slot] + bool(clear)

    def scores(self) -> NDArray[np.float64]:
        """Clear rate times failure rate; a level of which nothing is known has the best."""
        rates = (self._clears + 1.0) / (self._episodes + 2.0)
        return np.asarray(rates * (1.0 - rates))

    def weigh(self) -> None:
        """Let the shares follow the scores."""
        scores = self.scores()
        self.shares = ANY / len(scores) + (1.0 - ANY) * scores / scores.sum()

    def least(self, oldest: int) -> int:
        """The slot to make room in: the known level with the lowest score, or the oldest if none is known."""
        known = self._episodes >= KNOWN
        return int(np.where(known, self.scores(), 1.0).argmin()) if known.any() else oldest

    def forget(self, slot: int) -> None:
        """Another level is there now."""
        self._episodes[slot] = self._clears[slot] = 0.0

    def state_dict(self) -> dict[str, Any]:
        return {
            "episodes": self._episodes.copy(),
            "clears": self._clears.copy(),
            "shares": self.shares.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._episodes, self._clears = np.array(state["episodes"]), np.array(state["clears"])
        self.shares = np.array(state["shares"])
