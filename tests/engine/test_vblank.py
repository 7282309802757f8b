"""The vertical blank: its flag, its interrupt and the race between them, dot by dot."""

from __future__ import annotations

import pytest

import warpzone
from tests.engine.assembler import SYNC, at_dot, cartridge, delay, play

CLEAR = 20 * 341
"""Dots between the flag's rise and its fall."""


def status_at(offset: int) -> tuple[bool, bool]:
    """The flag in two reads, the first `offset` dots behind its rise."""
    m = play(
        f"""
    reset: {SYNC}
        {at_dot(offset, 4)}
        ldx $2002
        ldy $2002
        stx $10
        sty $11
    done: jmp done"""
    )
    return bool(m.ram[0x10] & 0x80), bool(m.ram[0x11] & 0x80)


@pytest.mark.parametrize(
    ("offset", "first", "second"),
    [(-4, False, True), (-3, False, True), (-2, False, True), (-1, False, True),
     (0, False, False), (1, True, False), (2, True, False), (3, True, False)],
)  # fmt: skip
def test_a_read_one_dot_early_keeps_the_flag_from_rising(offset: int, first: bool, second: bool) -> None:
    assert status_at(offset) == (first, second)


@pytest.mark.parametrize(("offset", "seen"), [(-3, True), (-1, True), (0, True), (1, False), (3, False)])
def test_the_flag_falls_twenty_lines_later(offset: int, seen: bool) -> None:
    assert status_at(CLEAR + offset)[0] is seen


def interrupts_with(code: str) -> int:
    """NMIs counted while a program runs."""
    m = play(
        f"""
    reset: ldx #$ff
        txs
        {SYNC}
        {code}
        lda #0
        sta $2000
    done: jmp done
    nmi: inc $10
        rti"""
    )
    return int(m.ram[0x10])


@pytest.mark.parametrize(
    ("offset", "raised"), [(-3, 1), (-1, 1), (0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (6, 1)]
)
def test_a_status_read_beside_the_rise_suppresses_the_interrupt(offset: int, raised: int) -> None:
    # The table of ppu_vbl_nmi's 06-suppression, 04 being offset 0: nothing; then the flag without the interrupt for
    # two dots; then both.
    before = at_dot(offset, 4, lead=100)
    enable = f"lda #$80\n sta $2000\n{delay(94)}\n"
    assert interrupts_with(f"{before}\n{enable}bit $2002\n{delay(60)}") == raised


@pytest.mark.parametrize(("offset", "raised"), [(-5, 1), (-2, 1), (-1, 1), (0, 0), (1, 0), (3, 0)])
def test_enabling_the_interrupt_raises_it_until_a_dot_before_the_flag_falls(offset: int, raised: int) -> None:
    # 07-nmi_on_timing: in the last dot in which a read still sees the flag, it is too late.
    assert (
        interrupts_with(f"{at_dot(CLEAR + offset, 4, lead=2)}\n lda #$80\n sta $2000\n{delay(40)}") == raised
    )


@pytest.mark.parametrize(("offset", "raised"), [(-3, 0), (0, 0), (1, 0), (2, 0), (3, 1), (5, 1)])
def test_disabling_the_interrupt_in_time_takes_it_back(offset: int, raised: int) -> None:
    before = at_dot(offset, 4, lead=100)
    enable = f"lda #$80\n sta $2000\n{delay(92)}\n lda #0\n"
    assert interrupts_with(f"{before}\n{enable}sta $2000\n{delay(40)}") == raised


def test_enabling_inside_the_blank_raises_it_once_more_each_time() -> None:
    toggles = "lda #$80\n sta $2000\n lda #0\n sta $2000\n" * 3
    assert interrupts_with(f"{at_dot(300, 4)}\n nop\n{toggles}") == 3


def test_writing_the_bit_again_while_it_is_set_raises_nothing() -> None:
    writes = "lda #$80\n" + "sta $2000\n" * 3
    assert interrupts_with(f"{at_dot(300, 4)}\n nop\n{writes}") == 1


def test_one_instruction_runs_before_an_interrupt_enabled_inside_the_blank() -> None:
    m = play(
        f"""
    reset: ldx #$ff
        txs
        {SYNC}
        {at_dot(300, 4)}
        nop
        lda #$80
        ldx #0
        sta $2000
        inx
        inx
        inx
    done: jmp done
    nmi: stx $10
        lda #0
        sta $2000
        rti"""
    )
    assert m.ram[0x10] == 1


def cycles_per(frames: int, mask: int, region: str = "ntsc") -> int:
    m = warpzone.Machine(
        cartridge(f"reset: lda #{mask}\n sta $2001\n lda #0\n sta $2000\ndone: nop\n jmp done"), region
    )
    m.step(frames=10)
    start = m.cycles
    m.step(frames=frames, render=False)
    return m.cycles - start


@pytest.mark.parametrize(
    ("mask", "region", "dots"),
    [(0x00, "ntsc", 89342.0), (0x08, "ntsc", 89341.5), (0x10, "ntsc", 89341.5), (0x08, "pal", 106392.0)],
)
def test_a_dot_is_dropped_every_other_frame_while_drawing(mask: int, region: str, dots: float) -> None:
    per_cycle = 3 if region == "ntsc" else 3.2
    assert abs(cycles_per(600, mask, region) - 600 * dots / per_cycle) < 6


def a_dot_is_dropped(first: int, second: int, dot: int, odd: bool) -> bool:
    """Whether the next frame comes a dot early when $2001 changes from one value to another at a dot of line 261."""
    # The blank's flag rises in dot 1 of line 241. Measured where it would rise for the third time behind the change
    # or earlier, whichever is a whole number of cycles away.
    change = 20 * 341 - 1 + dot
    dots = next(d for n in (1, 2, 3) if (d := n * 89342 - change) % 3 == 0)
    m = play(
        f"""
    reset: {SYNC}
        {at_dot(change, 4, lead=6 + 1000 + 2, odd=odd)}
        lda #{first}
        sta $2001
        {delay(1000)}
        lda #{second}
        sta $2001
        {delay(4000)}
        lda #0
        sta $2001
        {delay(dots // 3 - 4000 - 6 - 4)}
        bit $2002
        php
        pla
        sta $10
    done: jmp done"""
    )
    # A read in that very dot sees nothing, unless the flag came a dot sooner.
    return bool(m.ram[0x10] & 0x80)


@pytest.mark.parametrize(
    ("first", "second", "dot", "dropped"),
    [(0, 8, 338, True), (0, 8, 339, False), (8, 0, 338, False), (8, 0, 339, True), (0, 0, 100, False),
     (8, 8, 100, True)],
)  # fmt: skip
def test_the_dot_is_dropped_if_drawing_is_on_at_the_end_of_the_pre_render_line(
    first: int, second: int, dot: int, dropped: bool
) -> None:
    # The four cases of 10-even_odd_timing, and the two plain ones.
    either = [a_dot_is_dropped(first, second, dot, odd) for odd in (False, True)]
    assert sorted(either) == [False, dropped]


def test_frames_run_from_blank_to_blank() -> None:
    m = warpzone.Machine(cartridge("reset: lda #$80\n sta $2000\ndone: jmp done\nnmi: inc $10\n rti"))
    m.step(frames=5, render=False)
    counted = []
    for _ in range(20):
        m.step(render=False)
        counted.append(int(m.ram[0x10]))
    assert counted == list(range(counted[0], counted[0] + 20))
    assert m.frame == 25
