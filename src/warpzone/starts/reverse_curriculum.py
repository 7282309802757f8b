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
from warpzone.starts.way import Way

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
    """Gradient steps per update that imitate the trail where it is not learned any further."""
    arrivals: str = ""
    """Folder of arrivals from `warpzone explore --checkpoint` (empty = none)."""
    arrival_share: float = 0.25
    """Share of episodes that start at an arrival, 0 to 1."""

    def __post_init__(self) -> None:
        require(self, "trail_share", at_least=0, at_most=1)
        require(self, "arrival_share", at_least=0, at_most=1)
        require(self, "trail_patience", at_least=0)
        require(self, "trail_imitation", at_least=0)


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

    def to_imitate(self) -> list[list[Moment]]:
        """What is to be imitated of each trail that is stuck."""
        with self._lock:
            return [moments for way in self.ways.values() if (moments := way.to_imitate())]

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
