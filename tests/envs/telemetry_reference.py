"""What the RAM of Super Mario Bros means, in Python: the slow reference of the engine's telemetry (native/smb)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.telemetry import End, room

Ram = NDArray[np.uint8]
ROOMS = 64
LAST_WORLD = 7
"""As the game counts, from 0 on."""
_BOWSER, _FLAGPOLE = 0x2D, 0x31
_PLAYING = 8
_PAGE = 256
"""Pixels. Nobody walks that far in a frame."""


def digits(ram: Ram, address: int, count: int) -> int:
    """A number that the game keeps one decimal digit a byte."""
    value = 0
    for byte in ram[address : address + count].tolist():
        value = value * 10 + byte
    return value


def time_left(ram: Ram) -> int:
    return digits(ram, 0x07F8, 3)


def dying(ram: Ram) -> bool:
    return bool(ram[0x000E] == 0x0B or ram[0x00B5] > 1)


def world_over(ram: Ram) -> bool:
    return bool(ram[0x0770] == 2)


def stage_over(ram: Ram) -> bool:
    """Sliding down the flagpole, or past Bowser; a vine looks the same but for the enemy beside it."""
    if any(enemy in (_BOWSER, _FLAGPOLE) for enemy in ram[0x0016:0x001B].tolist()):
        return bool(ram[0x001D] == 3)
    return False


def flag_get(ram: Ram) -> bool:
    return world_over(ram) or stage_over(ram)


def episode_end(ram: Ram, stage: tuple[int, int]) -> End:
    """Whether and why the episode is over; stage (0, 0) is the whole game."""
    if stage == (0, 0):
        if ram[0x075A] == 0xFF:
            return End.GAME_OVER
        return End.AXE if world_over(ram) and ram[0x075F] == LAST_WORLD else End.NONE
    if dying(ram) or ram[0x000E] == 0x06:
        return End.TIME_UP if time_left(ram) == 0 else End.DEATH
    if world_over(ram):
        return End.AXE
    if stage_over(ram):
        return End.FLAG
    if (int(ram[0x075F]) + 1, int(ram[0x075C]) + 1) != stage:
        return End.WARP
    return End.NONE


def decode(ram: Ram) -> dict[str, int]:
    """The fields that are read from RAM alone; `x_pos` is not among them."""
    pixel_y = int(ram[0x03B8])
    return {
        "y_pos": (510 if ram[0x00B5] < 1 else 255) - pixel_y,
        "time": time_left(ram),
        "score": digits(ram, 0x07DE, 6),
        "coins": digits(ram, 0x07ED, 2),
        "life": int(ram[0x075A]),
        "world": int(ram[0x075F]) + 1,
        "stage": int(ram[0x075C]) + 1,
        "area": int(ram[0x0760]) + 1,
        "status": int(ram[0x0756]),
        "player_state": int(ram[0x000E]),
        "y_viewport": int(ram[0x00B5]),
        "loop_command": int(ram[0x0745]),
        "loop_parts_right": int(ram[0x06D9]),
        "loop_parts_passed": int(ram[0x06DA]),
    }


class Journey:
    """Progress through the rooms of an episode. Ground counts once: going back and coming again earns nothing."""

    def __init__(self) -> None:
        self.furthest: dict[Sequence[int], int] = {}
        self.rooms = 0
        self.progress = 0
        self.x_max = 0
        self.since_progress = 0
        self.wrong_turns = 0
        self._last: tuple[Sequence[int], int, int, int] | None = None

    def look(self, here: Sequence[int], x: int, counts: bool = True) -> None:
        self.x_max = max(self.x_max, x)
        if not counts:
            return
        if here not in self.furthest:
            if len(self.furthest) == ROOMS:
                del self.furthest[next(iter(self.furthest))]
            self.furthest[here] = x
            self.rooms += 1
            self.since_progress = 0
        elif x > self.furthest[here]:
            self.progress += x - self.furthest[here]
            self.furthest[here] = x
            self.since_progress = 0

    def look_for_wrong_turn(self, ram: Ram, x: int) -> None:
        """Count what the game itself calls a wrong turn: being sent back, and a part passed but not rightly."""
        here, passed, right = room(ram), int(ram[0x06DA]), int(ram[0x06D9])
        plays = ram[0x000E] == _PLAYING
        if plays and self._last is not None and self._last[0] == here:
            _, last_x, last_passed, last_right = self._last
            self.wrong_turns += x < last_x - _PAGE or (passed > last_passed and right == last_right)
        self._last = (here, x, passed, right) if plays else None
