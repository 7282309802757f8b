"""The way along one stage's trail: how often the stage is cleared from each place, and where to start next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.starts.trails import Moment

PARTS = 20
"""Parts of each trail; success is counted for each."""
OPEN = 0.3
"""Weight of a place by how uncertain it is whether the stage will be cleared from there."""
EVEN = 0.2
"""Share of uniform samples: of parts, and of places within one."""
FRONTIER = 0.8
"""Share of samples at the frontier, around the first moments that lead to the end, if all later ones do."""
CLEARED, TOGETHER = 0.15, 8
"""The clear rate that counts as cleared, and over how many moments it is taken."""
BEFORE, BEHIND = 4, 9
"""How many moments before and after the first of these the frontier extends."""
PART_RATE, EACH_RATE, START_RATE = 0.05, 0.1, 0.02
"""Update rates of the clear rates of parts, of places in them and of the true start."""
REACH_RATE, FURTHER, BETTER = 0.01, 1.02, 0.01
"""Update rate of the mean ground covered from the true start, and the gains, as a factor of it and as a difference of
clear rates, that count as progress."""
ENOUGH = 0.9
"""Clear rate from which on a stage needs no trail."""
STUCK = 2000
"""Episodes along a trail, without a moment cleared that is earlier than all before, after which it is imitated."""
IMITATED = 16
"""How many moments before the first cleared one are imitated then, until all of them are cleared."""
NEVER = 1 << 62
"""Patience that no run uses up."""


class Way:
    """The places along one stage's trail, in parts, and how often the stage is cleared from each.

    Episodes start at any moment of a place. What has to be done there may need an exact pixel; some moments are closer
    to it than others, and so lead the agent to it.
    """

    def __init__(self, places: Sequence[Sequence[Moment]], patience: int = 0) -> None:
        self.starts = [moment for place in places for moment in place]
        self.patience = self.full_patience = patience
        self.parts = min(PARTS, len(places))
        self.cleared = np.zeros(self.parts)
        self.each = np.zeros(len(places))
        self.moments = np.zeros(len(self.starts))
        self._limits = np.cumsum([0, *(len(place) for place in places)])
        self.mastery = self.best = self.reach = self.furthest = 0.0
        self.earliest = self.shown = len(self.starts)
        self.waited = 0

    def choose(self, random: np.random.Generator) -> int:
        """Sample a start: at the frontier; or in a part where success is lost before the next one or is uncertain, at a
        place chosen by the same rule, and there at any moment."""
        at = self.frontier()
        if random.random() < FRONTIER * self.beyond(at):
            return int(random.integers(max(at - BEFORE, 0), min(at + BEHIND, len(self.starts))))
        part = _draw(_lost(self.cleared), random)
        first, end = self._first(part), self._first(part + 1)
        place = first + _draw(_lost(self.each)[first:end], random)
        return int(random.integers(self._limits[place], self._limits[place + 1]))

    def frontier(self) -> int:
        """The first moment from which the stage is cleared now and then; the end of the trail, if there is none.

        Where it is cleared from the true start, what of the trail is not cleared is a way that the policy doesn't take.
        """
        if self.mastery >= CLEARED:
            return 0
        sums = np.convolve(self.moments, np.ones(TOGETHER))[TOGETHER - 1 :]
        cleared = np.flatnonzero(sums >= CLEARED * TOGETHER)
        return int(cleared[0]) if len(cleared) else len(self.starts)

    def first_cleared(self) -> int:
        """The first moment of the frontier that is cleared itself: those before it may only share its mean."""
        at = self.frontier()
        if self.mastery >= CLEARED or at == len(self.starts):
            return at
        return at + int(np.argmax(self.moments[at:] >= CLEARED))

    def beyond(self, moment: int) -> float:
        """The mean clear rate of the parts after that of a moment; 1 if there are none."""
        behind = self.cleared[self._place_and_part(moment)[1] + 1 :]
        return float(behind.mean()) if len(behind) else 1.0

    def ended(self, start: int, cleared: bool) -> None:
        """Record a finished episode that started at `start`."""
        place, part = self._place_and_part(start)
        self.cleared[part] += PART_RATE * (cleared - self.cleared[part])
        self.each[place] += EACH_RATE * (cleared - self.each[place])
        self.moments[start] += EACH_RATE * (cleared - self.moments[start])
        at = self.first_cleared()
        self.waited = 0 if at < self.earliest else self.waited + 1
        self.earliest = min(self.earliest, at)
        if self.waited >= STUCK:
            self.waited, self.shown = 0, max(self.earliest - IMITATED, 0)

    def ended_from_start(self, cleared: bool, ground: float, length: int) -> None:
        """Record a finished episode from the true start. While it is played better and better, no trail is used."""
        self.mastery += START_RATE * (cleared - self.mastery)
        self.reach += REACH_RATE * (ground - self.reach)
        further, better = self.reach > FURTHER * self.furthest, self.mastery > self.best + BETTER
        if further:
            self.furthest = self.reach
        if better:
            self.best = self.mastery
        if 0 < self.patience < NEVER:
            gains = further or better or self.mastery >= ENOUGH
            self.patience = self.full_patience if gains else max(self.patience - length, 0)

    def to_imitate(self) -> list[Moment]:
        """The last moments before the first cleared one, if the trail was stuck and not all it was shown is cleared."""
        at = self.first_cleared()
        is_shown = self.need() > 0 and self.earliest > self.shown
        return self.starts[max(at - IMITATED, 0) : at] if is_shown else []

    def need(self) -> float:
        """How much of its share the trail should have."""
        return 0.0 if self.patience > 0 or not self.starts else 1.0 - self.mastery

    def is_wanted(self) -> bool:
        """Whether plain learning makes no progress and there is no trail yet."""
        return not self.starts and self.patience <= 0

    def along(self, places: Sequence[Sequence[Moment]] | None) -> Way:
        """This way along a trail that was found; without one, it is never wanted again."""
        found = Way(places or [], self.full_patience)
        found.patience = 0 if places else NEVER
        found.mastery, found.best = self.mastery, self.best
        found.reach, found.furthest = self.reach, self.furthest
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "starts": len(self.starts), "patience": self.patience, "mastery": self.mastery,
            "best": self.best, "reach": self.reach, "furthest": self.furthest, "cleared": self.cleared.tolist(),
            "each": self.each.tolist(), "moments": self.moments.tolist(), "earliest": self.earliest,
            "waited": self.waited, "shown": self.shown,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.patience, self.mastery = state["patience"], state["mastery"]
        self.best = state.get("best", self.mastery)  # runs before 2026-11-18 have none
        self.reach, self.furthest = state["reach"], state["furthest"]
        if len(state["moments"]) == len(self.starts):
            self.cleared, self.each = np.array(state["cleared"]), np.array(state["each"])
            self.moments = np.array(state["moments"])
            # Runs before 2026-11-19 have none of these.
            self.earliest, self.waited = state.get("earliest", self.earliest), state.get("waited", 0)
            self.shown = state.get("shown", self.shown)

    def _place_and_part(self, moment: int) -> tuple[int, int]:
        place = int(np.searchsorted(self._limits, moment, side="right")) - 1
        return place, ((place + 1) * self.parts - 1) // len(self.each)

    def _first(self, part: int) -> int:
        return part * len(self.each) // self.parts


def _lost(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of places along the trail by the clear rates from there.

    Random search gets into danger and out again by luck. From such a place the stage is seldom cleared, and need not be
    if it is cleared from an earlier one: only what exceeds all earlier places counts as lost there.
    """
    best = np.maximum.accumulate(np.append(rates, 1.0))
    return np.diff(best) + OPEN * rates * (1.0 - rates)


def _draw(weights: NDArray[np.float64], random: np.random.Generator) -> int:
    """Sample a place by weight; sometimes uniformly."""
    total = float(weights.sum())
    if total <= 0.0 or random.random() < EVEN:
        return int(random.integers(len(weights)))
    return int(random.choice(len(weights), p=weights / total))
