"""Snapshots of the agent's own play, kept by stage and how far they are, and the choice of one to start from."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.errors import ConfigError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CELL_PIXELS = 64
"""Snapshots of one stage are told apart by so many pixels of progress, and by the rooms seen."""
FURTHEST_CELL, MOST_ROOMS = 255, 8
CELLS = (FURTHEST_CELL + 1) * MOST_ROOMS
"""Numbers that `cell_of` gives."""
SNAPSHOTS_PER_CELL = 4
ADVANCE_PIXELS = 4 * CELL_PIXELS
"""New ground that makes a start a success while nobody has cleared the stage."""
USUAL = 0.5
"""A success rate from which on a cell counts as learned."""
ENOUGH_STARTS = 4
"""A cell's success rate counts after so many starts."""
FOLLOW = 0.05
"""How quickly the rates follow new episodes, once there are some."""
MASTERED, UNLEARNED = 0.9, 0.5
"""Clear rates from the true start: at the first a stage gets no more restarts, up to the second its full share."""
BETTER = 1.03
"""What counts as getting better: so many times the progress."""
FOLLOW_START = 0.01
"""How quickly the progress from the true start follows its episodes."""
HARD = 0.4
"""Share of restarts that begin where new ground is seldom won."""
EXPLORE = 0.2
"""Share of restarts that are spread evenly over a stage's cells."""
SPREAD = 0.15
"""How far restarts scatter back from the frontier, as a share of the cells."""
PATIENCE = 10
"""Starts in vain after which a cell is chosen half as often."""
SNAPSHOT_FIELDS = ("stage", "cell", "progress", "rooms", "time", "number", "starts", "successes")
OF_CELLS = ("visits", "starts", "vain", "clear_rate", "advance_rate")
OF_STAGES = ("ever_cleared", "start_rate", "start_episodes", "start_progress", "best_progress", "better_at")


@dataclass(frozen=True)
class ArchiveConfig:
    """Restarts from snapshots of the agent's own play."""

    archive: bool = False
    """Where a stage does not get better, begin a share of its episodes where the agent has been before, latest first
    and moving back to the start. What is reported of a stage comes only from its true start."""
    archive_share: float = 0.4
    """Most episodes of a stage, as a share, that begin so; none while it gets better, nor once it is mastered."""
    archive_patience: int = 500
    """Episodes from its true start without getting better after which a stage has its whole share; 0: at once."""
    archive_mb: float = 32.0
    """Most memory for the snapshots, in MiB, also of each checkpoint; one takes about 2 KiB."""

    def __post_init__(self) -> None:
        if not 0 <= self.archive_share < 1:
            raise ConfigError(f"--archive-share is a share from 0 to below 1, not {self.archive_share}.")
        if self.archive_patience < 0:
            raise ConfigError("--archive-patience can't be negative.")
        if self.archive_mb <= 0:
            raise ConfigError("--archive-mb must be more than 0.")


def cell_of(progress: Ints, rooms: Ints) -> Ints:
    """The numbers of cells, in order of progress."""
    far = np.minimum(progress // CELL_PIXELS, FURTHEST_CELL)
    cells: Ints = far * MOST_ROOMS + np.minimum(rooms, MOST_ROOMS) - 1
    return cells


@dataclass(eq=False)
class Snapshot:
    """A console at some moment of an episode, and how the episodes went that began from it."""

    stage: int
    cell: int
    progress: int
    rooms: int
    time: int
    """Left on the game's clock."""
    blob: bytes
    """Compressed, once it is in the archive."""
    number: int = -1
    """In the order in which they came into the archive."""
    starts: int = 0
    successes: int = 0

    @property
    def promise(self) -> float:
        """The share of successes to expect."""
        return (self.successes + 1) / (self.starts + 2)

    def unpacked(self) -> bytes:
        return zlib.decompress(self.blob)


class Archive:
    """Snapshots in the cells of every stage, bounded in memory, and how often starting from each cell succeeds.

    Of a stage that was cleared, episodes begin around the frontier: just before the earliest cell from which clearing
    is usual. As the agent learns, the frontier moves back until it is the start of the stage. Before the first clear
    the frontier is the furthest cell.
    """

    def __init__(self, stages: Sequence[str], max_bytes: int, patience: int = 0, seed: int = 0) -> None:
        n = len(stages)
        self.stages = list(stages)
        self.patience = patience
        self.max_bytes = max_bytes
        self.random = np.random.default_rng(seed)
        self.snapshots: list[dict[int, list[Snapshot]]] = [{} for _ in stages]
        self.filled: list[Ints] = [np.zeros(0, np.int64) for _ in stages]
        """The cells of each stage that hold snapshots, in order."""
        self.bytes_of = np.zeros(n, np.int64)
        self.added = 0
        # Of every cell:
        self.visits = np.zeros((n, CELLS), np.int64)
        self.starts = np.zeros((n, CELLS), np.int64)
        self.vain = np.zeros((n, CELLS), np.int64)  # starts since the last success
        self.clear_rate = np.zeros((n, CELLS))
        self.advance_rate = np.zeros((n, CELLS))
        # Of every stage, from its true start:
        self.ever_cleared = np.zeros(n, np.bool_)  # from any start
        self.start_rate = np.zeros(n)
        self.start_episodes = np.zeros(n, np.int64)
        self.start_progress = np.zeros(n)  # a clear counts twice
        self.best_progress = np.zeros(n)
        self.better_at = np.zeros(n, np.int64)  # the episode at which it was last better than ever

    # ---- what is kept ----

    @property
    def size_bytes(self) -> int:
        return int(self.bytes_of.sum())

    def kept(self) -> list[Snapshot]:
        """All snapshots there are."""
        return [s for cells in self.snapshots for inside in cells.values() for s in inside]

    def add(self, snapshot: Snapshot) -> bool:
        """Keep a snapshot, in a full cell instead of the one that promises least; whether the cell is full now."""
        if snapshot.number < 0:
            snapshot.number = self.added
            self.added += 1
        stage, cell = snapshot.stage, snapshot.cell
        inside = self.snapshots[stage].setdefault(cell, [])
        if len(inside) == SNAPSHOTS_PER_CELL:
            self._drop_worst(inside)
        elif not inside:
            cells = self.filled[stage]
            self.filled[stage] = np.insert(cells, int(np.searchsorted(cells, cell)), cell)
        inside.append(snapshot)
        self.bytes_of[stage] += len(snapshot.blob)
        while self.size_bytes > self.max_bytes:
            self._make_room()
        return len(inside) == SNAPSHOTS_PER_CELL

    def _drop_worst(self, inside: list[Snapshot]) -> None:
        worst = min(inside, key=lambda s: (s.promise, s.time))
        inside.remove(worst)
        self.bytes_of[worst.stage] -= len(worst.blob)

    def _make_room(self) -> None:
        """Drop a snapshot of the stage that takes most, where it has many of a kind."""
        stage = int(self.bytes_of.argmax())
        cells = self.snapshots[stage]
        most = max(map(len, cells.values()))
        full = sorted(cell for cell, inside in cells.items() if len(inside) == most)
        cell = full[int(self.random.integers(len(full)))]
        self._drop_worst(cells[cell])
        if not cells[cell]:
            del cells[cell]
            self.filled[stage] = self.filled[stage][self.filled[stage] != cell]

    # ---- what became of episodes ----

    def ended(self, stage: int, cleared: bool, progress: int) -> None:
        """An episode from the true start of a stage is over."""
        self.ever_cleared[stage] |= cleared
        self.start_episodes[stage] += 1
        first = 1 / self.start_episodes[stage]
        self.start_rate[stage] += max(FOLLOW, first) * (cleared - self.start_rate[stage])
        score = progress * (2 if cleared else 1)
        self.start_progress[stage] += max(FOLLOW_START, first) * (score - self.start_progress[stage])
        if self.start_progress[stage] > BETTER * self.best_progress[stage]:
            self.best_progress[stage] = self.start_progress[stage]
            self.better_at[stage] = self.start_episodes[stage]

    def restarted(self, snapshot: Snapshot, cleared: bool, gained: int) -> None:
        """An episode from a snapshot is over, `gained` pixels further."""
        at = snapshot.stage, snapshot.cell
        self.ever_cleared[snapshot.stage] |= cleared
        advanced = cleared or gained >= ADVANCE_PIXELS
        success = cleared if self.ever_cleared[snapshot.stage] else advanced
        snapshot.starts += 1
        snapshot.successes += success
        self.starts[at] += 1
        self.vain[at] = 0 if success else self.vain[at] + 1
        follow = max(FOLLOW, 1 / self.starts[at])
        self.clear_rate[at] += follow * (cleared - self.clear_rate[at])
        self.advance_rate[at] += follow * (advanced - self.advance_rate[at])

    # ---- what comes next ----

    def need(self) -> Floats:
        """How much each stage wants restarts, 0 to 1: none while it gets better from its start, nor once mastered."""
        left = np.clip((MASTERED - self.start_rate) / (MASTERED - UNLEARNED), 0, 1)
        if self.patience:
            left *= np.clip((self.start_episodes - self.better_at) / self.patience, 0, 1)
        left[self.bytes_of == 0] = 0
        return left

    def frontier(self, stage: int) -> int | None:
        """Pixels of progress at which restarts of a stage are concentrated; none if there are none."""
        cells = self.filled[stage]
        return int(cells[self._frontier(stage)]) // MOST_ROOMS * CELL_PIXELS if len(cells) else None

    def _frontier(self, stage: int) -> int:
        cells = self.filled[stage]
        if self.ever_cleared[stage]:
            known = self.starts[stage, cells] >= ENOUGH_STARTS
            usual = np.flatnonzero(known & (self.clear_rate[stage, cells] >= USUAL))
            if len(usual):
                return max(0, int(usual[0]) - 1)
        return len(cells) - 1

    def choose(self, stage: int) -> Snapshot:
        """A snapshot to begin the next episode from; only where `need` is not 0."""
        limits = np.cumsum(self.chances(stage))
        at = np.searchsorted(limits[:-1], self.random.random() * limits[-1], side="right")
        inside = self.snapshots[stage][int(self.filled[stage][at])]
        left = self.random.random() * sum(s.promise for s in inside)
        for snapshot in inside:
            left -= snapshot.promise
            if left < 0:
                break
        return snapshot

    def chances(self, stage: int) -> Floats:
        """How often episodes of a stage begin from each of its filled cells."""
        cells = self.filled[stage]
        n = len(cells)
        back = self._frontier(stage) - np.arange(n)
        # A few from beyond the frontier keep what is known of it true.
        near = np.exp(-np.where(back >= 0, back, -4 * back) / max(2.0, SPREAD * n))
        near /= 1 + self.vain[stage, cells] / PATIENCE
        hard = 1.05 - self.advance_rate[stage, cells]
        if not self.ever_cleared[stage]:
            near *= hard
        chances: Floats = EXPLORE / n + HARD * hard / hard.sum() + (1 - EXPLORE - HARD) * near / near.sum()
        return chances

    # ---- saving ----

    def state_dict(self) -> dict[str, Any]:
        at = np.nonzero(self.visits + self.starts)
        return {
            "stages": list(self.stages),
            "snapshots": pack(self.kept()),
            "cells": np.stack(at),
            **{name: getattr(self, name)[at] for name in OF_CELLS},
            **{name: getattr(self, name).copy() for name in OF_STAGES},
            "added": self.added,
            "random": self.random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what is known of the stages that both have."""
        to = np.array([self.stages.index(s) if s in self.stages else -1 for s in state["stages"]])
        stage, cell = to[state["cells"][0]], state["cells"][1]
        for name in OF_CELLS:
            getattr(self, name)[stage[stage >= 0], cell[stage >= 0]] = state[name][stage >= 0]
        for name in OF_STAGES:
            if name in state:  # some are younger than others
                getattr(self, name)[to[to >= 0]] = state[name][to >= 0]
        for snapshot in unpack(state["snapshots"]):
            snapshot.stage = int(to[snapshot.stage])
            if snapshot.stage >= 0:
                self.add(snapshot)
        self.added = state["added"]
        self.random.bit_generator.state = state["random"]


def pack(snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """Snapshots as a few arrays: thousands of small values would make a checkpoint slow."""
    rows = [[getattr(s, name) for name in SNAPSHOT_FIELDS] for s in snapshots]
    return {
        "fields": np.array(rows, np.int64).reshape(-1, len(SNAPSHOT_FIELDS)),
        "sizes": np.array([len(s.blob) for s in snapshots], np.int64),
        "blobs": b"".join(s.blob for s in snapshots),
    }


def unpack(state: dict[str, Any]) -> list[Snapshot]:
    ends = np.cumsum(state["sizes"]).tolist()
    found = []
    for row, size, end in zip(state["fields"].tolist(), state["sizes"].tolist(), ends, strict=True):
        found.append(
            Snapshot(
                **dict(zip(SNAPSHOT_FIELDS, row, strict=True)), blob=bytes(state["blobs"][end - size : end])
            )
        )
    return found
