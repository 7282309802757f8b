"""Finds a solution for a stage by random play that restarts from the most promising places reached so far.

The places are cells: room, position to a tile, speed, and the game's own count of a maze's parts. An environment that
reaches a cell for the first time, or sooner than before, is kept as a snapshot. Random play restarts from the cells
that were used least often (the first half of Go-Explore). No stage, coordinate or path is known beforehand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.engine.rom import rom as find_rom
from warpzone.envs.actions import action_names
from warpzone.envs.telemetry import ENDS, counts_as_ground
from warpzone.envs.vector import MarioVectorEnv
from warpzone.levels.format import LevelData
from warpzone.starts.loops import without_loops
from warpzone.starts.trails import ACTIONS, Trail, sequence_of

CONSOLES = 32
PATIENCE = 60
"""Decisions without a new cell after which an environment restarts elsewhere."""
LET_GO = 0.15
"""Probability per decision of a new random action."""
SEARCH_ON = 3
"""A search takes this many times as long as its first solution: 7-4 then has one of 535 decisions instead of 845."""
LOOPS_SHARE = 4
"""The loops of the shortest solution are looked for at most this fraction of the search."""
SOONER = 8
"""Decisions by which a cell must be reached sooner to replace the path to it."""
TILE = 16
_PAGE_X, _PIXEL_X, _SPEED_X, _VIEWPORT_Y, _PIXEL_Y = 0x006D, 0x0086, 0x0057, 0x00B5, 0x03B8
_PARTS_RIGHT, _PARTS_PASSED, _AREA_TYPE, _AREA_NUMBER = 0x06D9, 0x06DA, 0x074E, 0x074F
_ANY = np.arange(len(action_names(ACTIONS)))
_SHARES = {
    "RIGHT": 1, "RIGHT+A": 2, "RIGHT+B": 2, "RIGHT+A+B": 4, "NOOP": 1, "A": 1, "LEFT": 1, "LEFT+A": 1, "DOWN": 1,
}  # fmt: skip
_FORWARD = np.array([i for i, name in enumerate(action_names(ACTIONS)) for _ in range(_SHARES.get(name, 0))])
_HALF_AS_LIKELY = 64
"""Pixels behind the furthest cell."""
Ints = NDArray[np.int64]


@dataclass(eq=False)
class _Cell:
    """A place, how it was reached, and the snapshot there."""

    number: int
    console: bytes
    parent: _Cell | None
    actions: tuple[int, ...]
    decisions: int
    reached: int
    """Ground covered on the way there, in pixels."""


def cells_of(ram: NDArray[np.uint8]) -> Ints:
    """One number for the cell of each environment [N]."""
    r = ram.astype(np.int64)
    room = r[:, _AREA_TYPE] << 8 | r[:, _AREA_NUMBER]
    page, speed = (ram[:, at].astype(np.int8).astype(np.int64) for at in (_PAGE_X, _SPEED_X))
    x, y = page * 256 + r[:, _PIXEL_X], r[:, _VIEWPORT_Y] * 256 + r[:, _PIXEL_Y]
    parts = r[:, _PARTS_RIGHT] << 4 | r[:, _PARTS_PASSED] & 15
    place = (x // TILE + 256) << 9 | (y // TILE & 31) << 4 | (speed >> 4) + 8
    return (room << 12 | parts) << 20 | place


class Explorer:
    """Random play on one stage, from places that it has reached."""

    def __init__(
        self,
        stage: str | LevelData,
        *,
        frame_skip: int = 4,
        seed: int = 0,
        rom: str | None = None,
        forward: bool = False,
    ) -> None:
        """`forward`: prefer buttons that go to the right and the cells furthest there, for stages without mazes."""
        what: Any = {"stage": stage} if isinstance(stage, str) else {"levels": [stage]}
        self._forward = forward
        self._envs = MarioVectorEnv(
            CONSOLES, **what, frame_skip=frame_skip, frame_stack=1, size=(8, 8), action_type=ACTIONS, threads=1,
            autoreset_mode="disabled", rom=find_rom(rom), seed=seed,
        )  # fmt: skip
        self._random = np.random.default_rng(seed)
        self._cells: dict[int, _Cell] = {}
        self._chosen = np.zeros(1024)
        self._by_number: list[_Cell] = []
        self._began = time.monotonic()
        self.tried = self.furthest = 0
        self._envs.reset(seed=seed)
        self._progress: NDArray[np.int32] = np.zeros(CONSOLES, np.int32)
        ram = self._envs.ram
        self._root = self._enter(0, int(cells_of(ram)[0]), None, (), 0)
        self._from = [self._root] * CONSOLES
        self._since: list[list[int]] = [[] for _ in range(CONSOLES)]
        self._idle = np.full(CONSOLES, PATIENCE)
        self._action = np.zeros(CONSOLES, np.int64)
        self._last = np.full(CONSOLES, -1, np.int64)

    def step(self) -> list[int] | None:
        """One decision in every environment; the whole solution, the shortest one, if any of them cleared the stage."""
        self._begin_elsewhere()
        random = self._random
        lets_go = (random.random(CONSOLES) < LET_GO) | [not since for since in self._since]
        drawn = random.choice(_FORWARD if self._forward else _ANY, CONSOLES)
        self._action = np.where(lets_go, drawn, self._action)
        _, _, terminated, truncated, info = self._envs.step(self._action)
        terminated |= truncated
        self._progress = info["progress"]
        self.tried += CONSOLES
        self._idle += 1
        for since, action in zip(self._since, self._action.tolist(), strict=True):
            since.append(action)
        cleared = [i for i in np.flatnonzero(terminated).tolist() if ENDS[info["end"][i]] in ("flag", "axe")]
        shortest = min((self._way(i) for i in cleared), key=len, default=None)
        self._idle[terminated] = PATIENCE
        self._look(terminated)
        self.furthest = max(self.furthest, int(info["x_pos"].max()))
        return shortest

    def without_loops(self, way: list[int], goes_on: Callable[[], bool]) -> list[int]:
        """A solution without the loops that it does not need. The search is over then."""
        return without_loops(
            self._envs, self._root.console, way, cells_of, self.tried // LOOPS_SHARE, goes_on
        )

    @property
    def cells(self) -> int:
        """How many were reached so far."""
        return len(self._cells)

    @property
    def seconds(self) -> float:
        """How long the search has taken so far."""
        return time.monotonic() - self._began

    def close(self) -> None:
        self._envs.close()

    # ---- inside ----

    def _begin_elsewhere(self) -> None:
        """Environments that found nothing new for a while restart from cells that were seldom used."""
        rows = np.flatnonzero(self._idle >= PATIENCE).tolist()
        if not rows:
            return
        weights = 1.0 / (1.0 + self._chosen[: len(self._by_number)])
        if self._forward:
            reached = np.array([cell.reached for cell in self._by_number])
            weights *= np.exp2((reached - reached.max()) / _HALF_AS_LIKELY) + 0.01
        chosen = self._random.choice(len(weights), len(rows), p=weights / weights.sum())
        np.add.at(self._chosen, chosen, 1)
        for row, number in zip(rows, chosen.tolist(), strict=True):
            cell = self._by_number[number]
            self._from[row], self._since[row] = cell, []
            self._idle[row] = 0
        self._envs.restore_many({row: self._from[row].console for row in rows})
        self._last[rows] = -1

    def _look(self, over: NDArray[np.bool_]) -> None:
        """Keep the environments that reached a new cell, or a known one sooner."""
        ram = self._envs.ram
        here = cells_of(ram)
        for i in np.flatnonzero(~over & (here != self._last)).tolist():
            if not counts_as_ground(ram[i], stood_only=True):
                continue
            key = int(here[i])
            known = self._cells.get(key)
            decisions = self._from[i].decisions + len(self._since[i])
            if known is None or decisions < known.decisions - SOONER:
                self._from[i] = self._enter(i, key, self._from[i], tuple(self._since[i]), decisions)
                self._since[i] = []
                self._idle[i] = 0
        self._last = here

    def _enter(
        self, i: int, key: int, parent: _Cell | None, actions: tuple[int, ...], decisions: int
    ) -> _Cell:
        known = self._cells.get(key)
        number = known.number if known else len(self._by_number)
        cell = _Cell(number, self._envs.snapshot(i), parent, actions, decisions, int(self._progress[i]))
        if known:
            self._by_number[number] = cell
        else:
            self._by_number.append(cell)
            if number == len(self._chosen):
                self._chosen = np.concatenate([self._chosen, np.zeros(number)])
        self._chosen[number] = 0
        self._cells[key] = cell
        return cell

    def _way(self, i: int) -> list[int]:
        parts: list[list[int]] = [self._since[i]]
        cell: _Cell | None = self._from[i]
        while cell is not None:
            parts.append(list(cell.actions))
            cell = cell.parent
        return [action for part in reversed(parts) for action in part]


def find_trail(
    stage: str,
    *,
    rom_sha256: str,
    frame_skip: int = 4,
    seed: int = 0,
    rom: str | None = None,
    minutes: float = 5.0,
    progress: Callable[[Explorer], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Trail | None:
    """Random play until the stage is cleared, and on for a shorter solution; None if there is none until the end."""
    explorer = Explorer(stage, frame_skip=frame_skip, seed=seed, rom=rom)
    shortest, tried, until = None, 0, 0

    def goes_on() -> bool:
        progress(explorer)
        return not should_stop() and explorer.seconds <= 60 * minutes

    try:
        while goes_on() and not 0 < until <= explorer.tried:
            way = explorer.step()
            if way is not None and (shortest is None or len(way) < len(shortest)):
                shortest, tried = way, explorer.tried
                until = until or SEARCH_ON * explorer.tried
        if shortest is None:
            return None
        shortest = explorer.without_loops(shortest, goes_on)
        text = sequence_of(shortest, frame_skip)
        return Trail(stage, rom_sha256, frame_skip, len(shortest), text, tried, round(explorer.seconds, 1))
    finally:
        explorer.close()
