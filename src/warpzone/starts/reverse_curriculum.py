"""The reverse curriculum: episodes that start along a known solution of the stage, its trail.

Many starts are sampled at the frontier, around the first moments from which the stage is cleared, and the others where
success is lost: where it is cleared less often than from a little further on. That is near the end at first and moves
back until the true start is reached. What the agent has to discover is then never far from what it already masters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.errors import require
from warpzone.starts.columns import Columns
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
NEVER = 1 << 62
"""Patience that no run uses up."""
AUTO = "auto"
Search = Callable[[int], Sequence[Sequence[Moment]] | None]
"""Gives the places along the trail of a stage, by its number; None if there is none, no places if it was broken off."""


@dataclass(frozen=True)
class TrailConfig:
    """Episodes that start elsewhere: along a trail, near its end first (a reverse curriculum), or at arrivals."""

    trails: str = ""
    """Folder of trails from `warpzone explore`; auto searches stages without progress (empty = none)."""
    trail_share: float = 0.9
    """Initial share of episodes that start on a trail, 0 to 1."""
    trail_patience: int = 500_000
    """Decisions without progress on a stage before its trail is used."""
    trail_imitation: int = 0
    """Gradient steps per update that imitate the trail just before its first cleared moment."""
    arrivals: str = ""
    """Folder of arrivals from `warpzone explore --checkpoint` (empty = none)."""
    arrival_share: float = 0.25
    """Share of episodes that start at an arrival, 0 to 1."""

    def __post_init__(self) -> None:
        require(self, "trail_share", at_least=0, at_most=1)
        require(self, "arrival_share", at_least=0, at_most=1)
        require(self, "trail_patience", at_least=0)
        require(self, "trail_imitation", at_least=0)


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
        """The first moment from which the stage is cleared now and then; the end of the trail, if there is none."""
        sums = np.convolve(self.moments, np.ones(TOGETHER))[TOGETHER - 1 :]
        cleared = np.flatnonzero(sums >= CLEARED * TOGETHER)
        return int(cleared[0]) if len(cleared) else len(self.starts)

    def first_cleared(self) -> int:
        """The first moment of the frontier that is cleared itself: those before it may only share its mean."""
        at = self.frontier()
        return at + int(np.argmax(self.moments[at:] >= CLEARED)) if at < len(self.starts) else at

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
            "each": self.each.tolist(), "moments": self.moments.tolist(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.patience, self.mastery = state["patience"], state["mastery"]
        self.best = state.get("best", self.mastery)  # runs before 2026-11-18 have none
        self.reach, self.furthest = state["reach"], state["furthest"]
        if len(state["moments"]) == len(self.starts):
            self.cleared, self.each = np.array(state["cleared"]), np.array(state["each"])
            self.moments = np.array(state["moments"])

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


class ReverseCurriculum:
    """Receives every step on the collecting thread and decides where the next episodes start."""

    def __init__(
        self,
        ways: Mapping[int, Sequence[Sequence[Moment]]],
        stages: Sequence[str],
        config: TrailConfig,
        weights: Callable[[], NDArray[np.float64]],
        seed: int = 0,
        search: Search | None = None,
    ) -> None:
        """`search` finds the trails of the stages that have none in `ways`, once they are wanted."""
        self.stages = list(stages)
        self.ways = {stage: Way(places, config.trail_patience) for stage, places in ways.items()}
        self._search = search
        if search is not None:
            for stage in set(range(len(stages))) - set(self.ways):
                self.ways[stage] = Way([], config.trail_patience)
        self._share = config.trail_share
        self._weights = weights
        self._random = np.random.default_rng([seed, 0xBAC2])
        self.columns = Columns()
        self._queued: dict[int, tuple[int, int]] = {}
        self._began: dict[int, tuple[int, int]] = {}
        self._episodes = self._on_trail = 0
        self._lock = threading.Lock()

    def observe(self, columns: slice, info: Mapping[str, Any]) -> None:
        """Process one step of the environments in `columns`."""
        ended = info.get("_final_info")
        if not self.ways or ended is None or not ended.any():
            return
        with self._lock:
            final = info["final_info"]
            limits = np.cumsum(self._weights() * self._needs())
            lost = info.get("worker_lost", np.zeros_like(ended))
            for row in np.flatnonzero(lost).tolist():
                # Nobody knows how it would have ended, and what was queued there is lost too.
                self._began.pop(columns.start + row, None)
                self._queued.pop(columns.start + row, None)
            for row in np.flatnonzero(ended & ~lost).tolist():
                self._end(columns.start + row, row, info, final)
                stage = int(np.searchsorted(limits, self._random.random(), side="right"))
                if stage < len(limits):
                    start = self.ways[stage].choose(self._random)
                    self._queued[columns.start + row] = stage, start
                    self.columns.queue_start(columns.start + row, self.ways[stage].starts[start].snapshot)
            # One search at a step: each may take minutes.
            wanted = [stage for stage, way in self.ways.items() if way.is_wanted()]
            if self._search is not None and wanted and (found := self._search(wanted[0])) != []:
                self.ways[wanted[0]] = self.ways[wanted[0]].along(found)

    def metrics(self) -> dict[str, Any]:
        """Clear rates from the trails, and the share of episodes on trails since the last call."""
        with self._lock:
            share = self._on_trail / self._episodes if self._episodes else 0.0
            self._episodes = self._on_trail = 0
            return {
                "trail_share": share,
                "trail_cleared": {
                    self.stages[stage]: round(float(way.cleared.mean()), 3)
                    for stage, way in self.ways.items()
                    if way.starts
                },
            }

    def before_cleared(self, count: int) -> list[list[Moment]]:
        """The last moments before the first cleared one of each trail that is not learned yet, up to so many."""
        with self._lock:
            used = [way for way in self.ways.values() if way.starts and way.need() > 0]
            return [way.starts[max(at - count, 0) : at] for way in used if (at := way.first_cleared()) > 0]

    def clear_rate(self) -> float:
        """The mean clear rate along the trails over all stages; a stage without a trail counts as 0."""
        with self._lock:
            rates = [float(way.cleared.mean()) for way in self.ways.values() if way.starts]
        return sum(rates) / len(self.stages)

    # ---- inside ----

    def _needs(self) -> NDArray[np.float64]:
        """The share of each stage's episodes that start on its trail."""
        needs = np.zeros(len(self.stages))
        for stage, way in self.ways.items():
            needs[stage] = self._share * way.need()
        return needs

    def _end(self, column: int, row: int, info: Mapping[str, Any], final: Mapping[str, Any]) -> None:
        cleared, stage = bool(final["flag_get"][row]), int(final["stage_index"][row])
        self._episodes += 1
        began = self._began.pop(column, None)
        if began is not None:
            self._on_trail += 1
            self.ways[began[0]].ended(began[1], cleared)
        elif stage in self.ways and not final["from_snapshot"][row]:
            self.ways[stage].ended_from_start(
                cleared, float(final["progress"][row]), int(final["steps"][row])
            )
        # A start queued during the step belongs to the next episode, or the one after it.
        if column in self._queued and info["from_snapshot"][row]:
            self._began[column] = self._queued.pop(column)

    # ---- saving ----

    def state_dict(self) -> dict[str, Any]:
        """How far each trail has been learned."""
        with self._lock:
            return {
                "stages": list(self.stages),
                "ways": {self.stages[stage]: way.state_dict() for stage, way in self.ways.items()},
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume each trail that is unchanged."""
        with self._lock:
            for name, saved in state["ways"].items():
                way = self.ways.get(self.stages.index(name)) if name in self.stages else None
                moments = saved.get("moments") if isinstance(saved, dict) else None
                # A trail that was found after the checkpoint was saved has no moments there yet.
                if way is not None and moments is not None and len(moments) in (0, len(way.starts)):
                    way.load_state_dict(saved)


class TrailStarts:
    """Where the current episodes started, and where the next ones will; saved with the environments."""

    def __init__(self, owner: ReverseCurriculum) -> None:
        self._of = owner

    def _ways(self) -> dict[str, int]:
        return {self._of.stages[stage]: len(way.starts) for stage, way in self._of.ways.items()}

    def state_dict(self) -> dict[str, Any]:
        of = self._of
        with of._lock:
            return {
                "stages": list(of.stages),
                "ways": self._ways(),
                "queued": [[column, *start] for column, start in of._queued.items()],
                "began": [[column, *start] for column, start in of._began.items()],
                "episodes": [of._episodes, of._on_trail],
                "random": of._random.bit_generator.state,
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume these episodes, if stages and trails are the same."""
        of = self._of
        ways = {k: v["starts"] if isinstance(v, dict) else v for k, v in state["ways"].items()}
        if state["stages"] != of.stages or ways != self._ways():
            return
        with of._lock:
            of._random.bit_generator.state = state["random"]
            of._episodes, of._on_trail = state["episodes"]
            of._began = {column: (stage, start) for column, stage, start in state["began"]}
            of._queued = {column: (stage, start) for column, stage, start in state["queued"]}
            for column, (stage, start) in of._queued.items():
                of.columns.queue_start(column, of.ways[stage].starts[start].snapshot)
