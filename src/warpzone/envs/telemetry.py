"""Telemetry in Python: the info dictionary, and what searches read from the RAM themselves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ram = NDArray[np.uint8]
_PLAYING = 8
_STATUS = np.array(["small", "tall", "fireball"])


def named_info(fields: Mapping[str, NDArray[np.int32]]) -> dict[str, Any]:
    """The info dictionary of a vector from the engine's fields, with the keys of gym-super-mario-bros."""
    info: dict[str, Any] = dict(fields)
    info["flag_get"] = info["flag_get"] != 0
    info["status"] = _STATUS.take(info["status"], mode="clip")
    return info


class End(IntEnum):
    """Why an episode ended, by the number in `info["end"]`."""

    NONE = 0
    DEATH = 1
    FLAG = 2
    AXE = 3
    TIME_UP = 4
    GAME_OVER = 5
    WARP = 6
    STALLED = 7
    STEP_LIMIT = 8


ENDS = ("", *(end.name.lower() for end in End if end))
"""The same as words."""
DEATHS = (End.DEATH, End.TIME_UP, End.GAME_OVER)


def died(before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Which environments lost a life in a step; only the whole game goes on after that."""
    lost: NDArray[np.bool_] = np.isin(after["end"], DEATHS) | (after["life"] < before["life"])
    return lost


def counts_as_ground(ram: Ram, stood_only: bool) -> bool:
    """In control of the player, not in a warp zone and, with `stood_only`, not in mid-jump either."""
    stands = ram[0x001D] in (0, 3) or ram[0x0704] != 0
    return bool(ram[0x000E] == _PLAYING and ram[0x06D6] == 0 and (stands or not stood_only))


def room(ram: Ram) -> tuple[int, int, int, int]:
    """The room the player is in, so that a position is compared only with positions in the same one."""
    return int(ram[0x075F]), int(ram[0x075C]), int(ram[0x074E]), int(ram[0x074F])
