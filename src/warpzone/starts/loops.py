"""Random search wanders: a solution of a stage without the loops that it does not need.

A loop leads back to a place where the player was before. Left out, everything else is where it was some time ago:
speed, enemies, lifts, hidden blocks. So a loop is left out only if the rest, played from before it, still clears
the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.telemetry import ENDS
from warpzone.envs.vector import MarioVectorEnv

CLEARED = (ENDS.index("flag"), ENDS.index("axe"))
Cells = Callable[[NDArray[np.uint8]], NDArray[np.int64]]
"""A number for the place of each environment, from its RAM."""


class _Loop(NamedTuple):
    """Decisions that could be left out."""

    length: int
    first: int
    end: int


def without_loops(
    envs: MarioVectorEnv,
    start: bytes,
    actions: Sequence[int],
    cells: Cells,
    tries: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> list[int]:
    """The solution from a snapshot without the loops that it does not need, the longest first.

    At most about `tries` decisions are played to find out, and none once `goes_on` says so.
    """
    actions = list(actions)
    while True:
        consoles, places = _played(envs, start, actions, cells)
        tries -= envs.num_envs * len(actions)
        loops, shorter = _loops(places), None
        for at in range(0, len(loops), envs.num_envs):
            if tries <= 0 or not goes_on():
                return actions
            batch = loops[at : at + envs.num_envs]
            rests = [actions[loop.end :] for loop in batch]
            lengths = _lengths(envs, [consoles[loop.first] for loop in batch], rests)
            tries -= sum(map(len, rests))
            cleared = [(loop, n) for loop, n in zip(batch, lengths, strict=True) if n]
            if cleared:
                loop, length = cleared[0]
                shorter = actions[: loop.first] + actions[loop.end :][:length]
                break
        if shorter is None:
            return actions
        actions = shorter


def _played(
    envs: MarioVectorEnv, start: bytes, actions: Sequence[int], cells: Cells
) -> tuple[list[bytes], list[int]]:
    """The snapshot before each action, and the place there."""
    consoles, places = [], []
    envs.restore_many(dict.fromkeys(range(envs.num_envs), start))
    for action in actions:
        consoles.append(envs.snapshot(0))
        places.append(int(cells(envs.ram[:1])[0]))
        _, _, terminated, truncated, _ = envs.step(np.full(envs.num_envs, action))
        if terminated[0] or truncated[0]:
            break
    return consoles, places


def _loops(places: Sequence[int]) -> list[_Loop]:
    """From each moment to the next and to the last time at its place, the longest first."""
    visits: dict[int, list[int]] = {}
    for moment, place in enumerate(places):
        visits.setdefault(place, []).append(moment)
    ends = {
        (first, end) for all_of in visits.values() for first in all_of[:-1] for end in _ends(all_of, first)
    }
    return sorted((_Loop(end - first, first, end) for first, end in ends), reverse=True)


def _ends(visits: Sequence[int], first: int) -> tuple[int, int]:
    """The first moment at a place after it was left, and the last."""
    later = [moment for moment in visits if moment > first]
    back = next(
        (now for before, now in zip([first, *later], later, strict=False) if now > before + 1), later[-1]
    )
    return back, later[-1]


def _lengths(envs: MarioVectorEnv, consoles: Sequence[bytes], ways: Sequence[Sequence[int]]) -> list[int]:
    """How many of its actions each way needs to clear the stage from its snapshot; 0 if it does not."""
    lengths, going = [0] * len(ways), set(range(len(ways)))
    envs.restore_many(dict(enumerate(consoles)))
    for t in range(max(map(len, ways))):
        going -= {row for row in going if t == len(ways[row])}
        if not going:
            break
        actions = np.zeros(envs.num_envs, np.int64)
        for row in going:
            actions[row] = ways[row][t]
        _, _, terminated, truncated, info = envs.step(actions)
        over = np.flatnonzero(terminated | truncated).tolist()
        for row in going.intersection(over):
            lengths[row] = t + 1 if int(info["end"][row]) in CLEARED else 0
        going -= set(over)
        # No environment is stepped after its end.
        envs.restore_many(dict.fromkeys(over, consoles[0]))
    return lengths
