"""Fills the archive from the environments of a run, and lets some of their episodes begin from it."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpzone.run.archive import CELLS, Archive, ArchiveConfig, Floats, Snapshot, cell_of, pack, unpack

HOLD = 12
"""Decisions an episode must outlive a snapshot for it to be kept: one in mid-fall would teach nothing."""
FILL, REFRESH = 50, 2000
"""Decisions between two snapshots of a cell, until it is full and from then on."""
BURST = 32
"""Most snapshots in one step; on average one in each."""
Weights = Callable[[], Floats]
FIRST_CELL = int(cell_of(np.array(0), np.array(1)))


class Restartable(Protocol):
    """What is asked of the environments."""

    @property
    def num_envs(self) -> int: ...

    def snapshot(self, index: int, *, whole_stack: bool) -> bytes: ...

    def queue_start(self, index: int, blob: bytes) -> None: ...


class Restarts:
    """Told of every step on the thread that collects, while the environments of those columns rest."""

    def __init__(
        self,
        config: ArchiveConfig,
        stages: list[str],
        num_envs: int,
        weights: Weights,
        seed: int = 0,
    ) -> None:
        self.archive = Archive(stages, int(config.archive_mb * (1 << 20)), config.archive_patience, seed)
        self._share = config.archive_share
        self._weights = weights
        self._envs: dict[int, Restartable] = {}
        self._lanes = 1
        self._lock = threading.Lock()
        self._clock = 0
        self._tokens = BURST
        # From when on a snapshot of a cell is wanted.
        self._due = np.zeros((len(stages), CELLS), np.int64)
        self._cell = np.full(num_envs, FIRST_CELL, np.int64)
        self._started: dict[int, Snapshot] = {}
        self._queued: dict[int, Snapshot] = {}
        self._candidates: list[tuple[int, int, Snapshot]] = []
        self._episodes = self._restarts = 0

    def attach(self, envs: Sequence[Restartable]) -> None:
        """Tell whose columns are whose: those of each vector follow those of the one before."""
        first = np.cumsum([0, *(part.num_envs for part in envs)]).tolist()
        self._envs = dict(zip(first, envs, strict=False))
        self._lanes = len(envs)

    def observe(self, columns: slice, info: Mapping[str, Any]) -> None:
        """Take in one step of the environments in `columns`."""
        with self._lock:
            envs = self._envs[columns.start]
            self._clock += 1
            self._tokens = min(BURST, self._tokens + 1)
            ended = info.get("_final_info")
            if ended is not None and ended.any():
                self._end(columns.start, np.flatnonzero(ended), info, envs)
            self._look(columns, info, envs)
            self._admit_survivors()

    def metrics(self) -> dict[str, Any]:
        """The fields of the metrics; the share is of the episodes since the last call."""
        with self._lock:
            archive = self.archive
            frontiers = {name: archive.frontier(stage) for stage, name in enumerate(archive.stages)}
            values = {
                "archive_cells": sum(map(len, archive.filled)),
                "archive_snapshots": len(archive.kept()),
                "archive_mb": archive.size_bytes / (1 << 20),
                "archive_share": self._restarts / self._episodes if self._episodes else 0.0,
                "archive_frontier": {name: at for name, at in frontiers.items() if at is not None},
            }
            self._episodes = self._restarts = 0
            return values

    # ---- inside ----

    def _end(self, first: int, rows: NDArray[np.int64], info: Mapping[str, Any], envs: Restartable) -> None:
        final = info["final_info"]
        cleared, progress = final["flag_get"][rows].tolist(), final["progress"][rows].tolist()
        stages, again = final["stage_index"][rows].tolist(), info["from_snapshot"][rows].tolist()
        self._episodes += len(rows)
        limits = np.cumsum(self._weights() * self.archive.need() * self._share)
        draws = np.searchsorted(limits, self.archive.random.random(len(rows)), side="right").tolist()
        for i, row in enumerate(rows.tolist()):
            column = first + row
            self._settle(column, bool(cleared[i]))
            began = self._started.pop(column, None)
            if began is not None:
                self._restarts += 1
                self.archive.restarted(began, bool(cleared[i]), progress[i] - began.progress)
            elif not final["from_snapshot"][row]:
                self.archive.ended(stages[i], bool(cleared[i]), progress[i])
            queued = self._queued.pop(column, None)
            if queued is not None and again[i]:
                self._started[column] = queued
                self._cell[column] = queued.cell
            else:
                self._cell[column] = FIRST_CELL
            if draws[i] < len(limits):
                self._queued[column] = chosen = self.archive.choose(draws[i])
                envs.queue_start(row, chosen.unpacked())

    def _look(self, columns: slice, info: Mapping[str, Any], envs: Restartable) -> None:
        """Take snapshots in cells that were just entered and want one."""
        progress, rooms = info["progress"].astype(np.int64), info["rooms_seen"].astype(np.int64)
        cells = cell_of(progress, rooms)
        rows = np.flatnonzero(cells != self._cell[columns])
        if not len(rows):
            return
        self._cell[columns] = cells
        stages = np.asarray(info["stage_index"])
        np.add.at(self.archive.visits, (stages[rows], cells[rows]), 1)
        due = self._due[stages[rows], cells[rows]]
        # Nothing is gained by a start beside the true one.
        wanted = (due <= self._clock) & (cells[rows] != FIRST_CELL)
        rows, due = rows[wanted], due[wanted]
        if len(rows) > self._tokens:
            # Those that nobody has been to come first.
            rows = rows[np.argsort(due, kind="stable")]
        for row in rows[: self._tokens].tolist():
            stage, cell = int(stages[row]), int(cells[row])
            if self._due[stage, cell] > self._clock:
                continue
            self._due[stage, cell] = self._clock + (HOLD + 1) * self._lanes
            blob = envs.snapshot(row, whole_stack=False)
            taken = Snapshot(stage, cell, int(progress[row]), int(rooms[row]), int(info["time"][row]), blob)
            self._candidates.append((self._clock + HOLD * self._lanes, columns.start + row, taken))
            self._tokens -= 1

    def _admit_survivors(self) -> None:
        ready = 0
        while ready < len(self._candidates) and self._candidates[ready][0] <= self._clock:
            self._admit(self._candidates[ready][2])
            ready += 1
        del self._candidates[:ready]

    def _settle(self, column: int, cleared: bool) -> None:
        """An episode is over: what it had not yet outlived is kept if it was cleared."""
        mine = [one for one in self._candidates if one[1] == column]
        if mine:
            self._candidates = [one for one in self._candidates if one[1] != column]
        for _, _, taken in mine if cleared else ():
            self._admit(taken)

    def _admit(self, taken: Snapshot) -> None:
        taken.blob = zlib.compress(taken.blob, 1)
        full = self.archive.add(taken)
        self._due[taken.stage, taken.cell] = self._clock + (REFRESH if full else FILL) * self._lanes

    # ---- saving ----

    def state_dict(self, with_consoles: bool) -> dict[str, Any]:
        """The archive; with the consoles also what their episodes began from and will begin from."""
        with self._lock:
            state: dict[str, Any] = {"archive": self.archive.state_dict(), "play": None}
            if with_consoles:
                state["play"] = {
                    "clock": self._clock,
                    "tokens": self._tokens,
                    "episodes": self._episodes,
                    "restarts": self._restarts,
                    "due": self._due.copy(),
                    "cell": self._cell.copy(),
                    "started": [[column, s.number] for column, s in self._started.items()],
                    "queued": [[column, s.number] for column, s in self._queued.items()],
                    # The archive may have dropped them meanwhile.
                    "in_use": pack([*self._started.values(), *self._queued.values()]),
                    "waiting": [[when, column] for when, column, _ in self._candidates],
                    "candidates": pack([taken for _, _, taken in self._candidates]),
                }
            return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the archive; episodes begin anew."""
        with self._lock:
            self.archive.load_state_dict(state["archive"])

    def load_play(self, state: dict[str, Any]) -> None:
        """Go on with the episodes of consoles that were put back, if the stages are still the same."""
        play = state["play"]
        if state["archive"]["stages"] != self.archive.stages:
            return
        with self._lock:
            self._clock, self._tokens = play["clock"], play["tokens"]
            self._episodes, self._restarts = play["episodes"], play["restarts"]
            self._due[:], self._cell[:] = play["due"], play["cell"]
            known = {s.number: s for s in (*unpack(play["in_use"]), *self.archive.kept())}
            self._started = {column: known[number] for column, number in play["started"]}
            self._queued = {column: known[number] for column, number in play["queued"]}
            candidates = unpack(play["candidates"])
            self._candidates = [
                (when, column, taken)
                for (when, column), taken in zip(play["waiting"], candidates, strict=True)
            ]
            for column, snapshot in self._queued.items():
                first = max(start for start in self._envs if start <= column)
                self._envs[first].queue_start(column - first, snapshot.unpacked())
