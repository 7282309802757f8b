"""The engine against nes-py, byte by byte, where nes-py is right. docs/engine.md says what differs and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import warpzone
from tests.engine.assembler import cartridge
from tests.engine.test_shortcuts import random_buttons
from warpzone.engine import PALETTE
from warpzone.engine.rom import rom_path

pytest.importorskip("nes_py")

STEPS = 600
# nes-py's step is 29,781 cycles, a little more than a frame, and ends inside the game's interrupt handler: its memory
# shows a frame half done. A byte is then as it was before the frame or as it is after, unless the handler writes it
# more than once in a frame, as it does these:
REWRITTEN = [
    range(0x0000, 0x0008),  # scratch of every routine
    range(0x00E0, 0x0100),  # pointers of the sound engine and the level parser
    range(0x0100, 0x0200),  # the stack
    range(0x0200, 0x0300),  # sprites on their way to the picture unit
    range(0x0300, 0x0400),  # what is on its way to video memory
    range(0x06A0, 0x06B0),  # columns being unpacked
    range(0x071E, 0x0720),
    range(0x0745, 0x0748),
    range(0x0773, 0x0779),  # copies of the picture unit's registers
    range(0x0780, 0x07A2),  # timers: counted down first, set later
]


def nes_py(path: str) -> Any:
    from nes_py import NESEnv, _rom

    # NumPy 2 does not let a header byte grow beyond 255.
    _rom.ROM.prg_rom_size = property(lambda self: 16 * int(self.header[4]))
    _rom.ROM.chr_rom_size = property(lambda self: 8 * int(self.header[5]))
    env = NESEnv(path)
    env.reset()
    return env


def played(buttons: list[int]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Memory of nes-py after every step, and of the engine after every frame, one frame ahead."""
    env = nes_py(str(rom_path()))
    machine = warpzone.Machine(warpzone.rom())
    machine.step(0, render=False)
    theirs, ours = [], [machine.ram.copy()]
    for held in buttons:
        env._frame_advance(held)
        machine.step(held, render=False)
        theirs.append(np.array(env.ram, np.uint8))
        ours.append(machine.ram.copy())
    env.close()
    return np.array(theirs), np.array(ours)


def scripted_buttons() -> list[int]:
    """Starts the game, runs to the first pipe and jumps."""
    buttons = [0] * 40 + [8] * 3 + [0] * 180
    while len(buttons) < STEPS:
        buttons += [0x82] * 25 + [0x83] * 20
    return buttons[:STEPS]


@pytest.mark.parametrize(
    "buttons", [scripted_buttons(), random_buttons(11, STEPS)], ids=["scripted", "random"]
)
def test_memory_is_the_same_frame_by_frame(buttons: list[int]) -> None:
    theirs, ours = played(buttons)
    kept = np.ones(0x800, bool)
    for area in REWRITTEN:
        kept[area.start : area.stop] = False
    same = (theirs == ours[1:]) | (theirs == ours[:-1])
    wrong = np.argwhere(~same[:, kept])
    where = [(int(step), hex(int(np.flatnonzero(kept)[at]))) for step, at in wrong]
    assert not where, where[:10]
    # The game went on to play, not just to its title.
    assert theirs[-1, 0x0770] == 1


def test_all_64_colours_are_those_of_nes_py(tmp_path: Path) -> None:
    # A program that shows the next colour every fourth frame.
    image = cartridge("""
    reset: lda #$80
        sta $2000
    done: jmp done
    nmi: inc $10
        lda $10
        lsr a
        lsr a
        tax
        lda #$3f
        sta $2006
        lda #0
        sta $2006
        stx $2007
        lda #0
        sta $2006
        sta $2006
        sta $2005
        sta $2005
        lda #$0a
        sta $2001
        rti""")
    path = tmp_path / "colours.nes"
    path.write_bytes(image)
    env = nes_py(str(path))
    machine = warpzone.Machine(image)
    theirs, ours = [], []
    for _ in range(64 * 4 + 12):
        env._frame_advance(0)
        machine.step(0)
        theirs.append(tuple(int(v) for v in np.asarray(env.screen)[120, 128][:3]))
        ours.append(tuple(int(v) for v in machine.screen[120, 128]))
    env.close()
    # Both begin with a few frames of their own; from then on the colours come in the same order.
    begin_theirs, begin_ours = (theirs.index(PALETTE[1]), ours.index(PALETTE[1]))
    count = 62 * 4
    assert theirs[begin_theirs : begin_theirs + count] == ours[begin_ours : begin_ours + count]
    assert ours[begin_ours : begin_ours + count : 4] == PALETTE[1:63]


@pytest.mark.parametrize("frames", [40, 100], ids=["title", "title later"])
def test_still_pictures_are_the_same_pixel_by_pixel(frames: int) -> None:
    env = nes_py(str(rom_path()))
    machine = warpzone.Machine(warpzone.rom())
    machine.step(0, frames=frames)
    for _ in range(frames):
        env._frame_advance(0)
    assert np.array_equal(np.asarray(env.screen)[..., :3], machine.screen)
    env.close()
