"""Levels as frames and letters: the game itself builds them while Mario is carried along the top of the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from warpzone.engine import Machine
from warpzone.engine.rom import rom as find_rom
from warpzone.errors import ConfigError
from warpzone.levels.format import Enemy, LevelData
from warpzone.levels.image import level_image, level_memory
from warpzone.levels.kinds import EnemyKind
from warpzone.levels.tables import tables

BLOCK, ROWS = 16, 13
HUD = 32
"""Rows of the screen above the area."""
SCREEN = 256
_STRIP = 112
"""Pixels that are taken over at a time, from the right of the screen: enemies have hardly moved there."""
_WORLD, _STAGE, _AREA, _PRE_LEVEL_TIMER, _TIME = 0x75F, 0x75C, 0x760, 0x7A0, 0x7F8
_LEFT_PAGE, _LEFT_PIXEL = 0x71A, 0x71C
_BUFFER = 0x500
"""Blocks of two pages of the area, each 13 rows of 16."""
_PINNED = {
    0x0E: 8,  # playing, whatever the entrance would be
    0x1D: 2,  # in the air
    0x57: 0x28,  # speed to the right
    0xB5: 0,  # above the screen
    0xCE: 0xC0,
    0x9F: 0,  # neither rising nor falling
    0x716: 1,  # walls don't stop him
    0x723: 0,  # nothing stops the screen
    0x745: 0,  # mazes don't lead back
    0x79E: 8,  # nothing hurts him
    0x7F8: 4,  # the time does not run out
}
_START_LIMIT, _LONGEST_WAIT = 3000, 40
_LETTERS = {
    "#": (0x54, 0x61, 0x62, 0x69, 0x6A, 0x6B, 0x6C, 0x86, 0x87, 0x88),
    "|": (*range(0x10, 0x16), *range(0x1C, 0x24)),
    "T": tuple(range(0x16, 0x1C)),
    "B": (0x45, 0x47, *range(0x4B, 0x53), *range(0x55, 0x5E)),
    "?": (0xC0, 0xC1),
    "h": (0x5F, 0x60),
    "o": (0xC2, 0xC3),
    "u": (0xC4,),
    "X": (0xC5,),
    "P": (0x24, 0x25),
    "=": (0x63, 0x89),
    "C": (0x64, 0x65, 0x66),
    "S": (0x67, 0x68),
}  # fmt: skip
"""Letters of the blocks that one can stand on, hit or take; anything else is scenery."""
_LETTER_OF = {block: letter for letter, blocks in _LETTERS.items() for block in blocks}


def started(level: LevelData, image: bytes | None = None) -> Machine:
    """A console in which the level has begun."""
    rom = find_rom() if image is None else image
    if not level.header.timer:  # a room between areas: time shows that it has begun, and nobody walks on
        level = replace(level, header=replace(level.header, timer=400, entrance=2))
    machine = Machine(level_image(rom))
    memory = level_memory(rom, level)
    machine.wram[: len(memory)] = np.frombuffer(memory, np.uint8)
    ram, found = machine.ram, tables(rom)
    world = int(level.stage[0]) - 1
    area = found.stage_place(level.stage) - found.table("worlds", 8)[world]
    for buttons in (0, 8, 0):
        machine.step(buttons, render=False)
    last = 0
    for _ in range(_START_LIMIT):
        time = int(ram[_TIME : _TIME + 3] @ (100, 10, 1))
        if time < last:
            return machine
        machine.step(8, render=False)
        if not last and not time:
            ram[_WORLD], ram[_STAGE], ram[_AREA] = world, int(level.stage[2]) - 1, area
        machine.step(0, render=False)
        if not time:
            ram[_PRE_LEVEL_TIMER] = 0
        last = time
    raise ConfigError(f"The level {level.name or level.stage} does not start in the game.")


def _travel(
    level: LevelData, image: bytes | None, render: bool, look: Callable[[Machine, int], None]
) -> None:
    """Carry Mario through the level; `look` gets the console and the left edge of its screen, in pixels."""
    machine = started(level, image)
    ram = machine.ram
    last, still, shown = -1, 0, 0
    while still < _LONGEST_WAIT:
        for address, value in _PINNED.items():
            ram[address] = value
        machine.step(0x80, render=render)
        edge = int(ram[_LEFT_PAGE]) * 256 + int(ram[_LEFT_PIXEL])
        still = still + 1 if edge <= last else 0
        last = max(last, edge)
        # The screen was drawn before the game moved on.
        look(machine, shown)
        if shown + SCREEN >= level.columns * BLOCK:
            return
        shown = edge


def draw(level: LevelData, rom: bytes | None = None) -> NDArray[np.uint8]:
    """The whole level as the game shows it, uint8 [208, width, 3], with enemies where they wait."""
    width = level.columns * BLOCK
    out = np.zeros((ROWS * BLOCK, width, 3), np.uint8)
    done = 0

    def look(machine: Machine, edge: int) -> None:
        nonlocal done
        # The first columns are all taken from the screen on which Mario would stand.
        if done == 0:
            done = min(SCREEN, width)
            out[:, :done] = machine.screen[HUD:, :done]
        elif edge + SCREEN >= min(done + _STRIP, width) and done < width:
            till = min(edge + SCREEN, width)
            out[:, done:till] = machine.screen[HUD:, done - edge : till - edge]
            done = till

    _travel(level, rom, True, look)
    return out


def blocks(level: LevelData, rom: bytes | None = None) -> NDArray[np.uint8]:
    """The game's number for the block in each of 13 rows and each column; 0 is air or scenery."""
    out = np.zeros((ROWS, level.columns), np.uint8)
    column = 0

    def look(machine: Machine, edge: int) -> None:
        nonlocal column
        # Columns are built a little beyond the right edge, and stay for a page.
        while column < level.columns and (column + 1) * BLOCK <= edge + SCREEN:
            at = _BUFFER + (column // 16 % 2) * 0xD0 + column % 16
            out[:, column] = machine.ram[at : at + 0xD0 : 16]
            column += 1

    _travel(level, rom, False, look)
    return out


def text(level: LevelData, rom: bytes | None = None) -> str:
    """13 lines of letters: # ground, B bricks, ? questions, | pipes, P flagpole, o coins, e enemies, ~ lifts."""
    grid = [[_LETTER_OF.get(int(b), "." if b else " ") for b in row] for row in blocks(level, rom)]
    for enemy in level.enemies:
        if isinstance(enemy, Enemy) and enemy.kind is not EnemyKind.PAGE and enemy.column < len(grid[0]):
            lift = EnemyKind.BALANCE_LIFT.value <= enemy.kind.value <= EnemyKind.SMALL_LIFT_DOWN.value
            row = min(max(enemy.row - 1, 0), ROWS - 1)
            if grid[row][enemy.column] == " ":
                grid[row][enemy.column] = "~" if lift else "e"
    return "\n".join("".join(row).rstrip() for row in grid)
