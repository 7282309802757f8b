"""What a program sees of the sound unit's frame counter, its interrupt flag, and the channel that plays samples."""

from __future__ import annotations

import pytest

from tests.engine.assembler import delay, play
from tests.engine.sound_programs import SETUP, status_after, sync


def test_the_frame_interrupt_flag_is_set_29831_cycles_behind_the_write() -> None:
    assert status_after(0, 29830) & 0x40 == 0
    assert status_after(0, 29831) & 0x40 == 0x40


@pytest.mark.parametrize("mode", [0x40, 0x80, 0xC0])
def test_other_modes_set_no_flag(mode: int) -> None:
    assert status_after(mode, 60000) & 0x40 == 0


@pytest.mark.parametrize(
    ("first", "seen"), [(29829, (0, 0x40)), (29831, (0x40, 0x40)), (29832, (0x40, 0x40)), (29833, (0x40, 0))]
)
def test_the_flag_is_set_in_three_successive_cycles(first: int, seen: tuple[int, int]) -> None:
    # Reading clears it, yet it comes back while the counter holds it.
    m = play(
        f"""
    reset: {SETUP}
        {sync()}
        lda #0
        sta $4017
        {delay(first - 4)}
        lda $4015
        ldx $4015
        sta $10
        stx $11
    done: jmp done"""
    )
    assert (m.ram[0x10] & 0x40, m.ram[0x11] & 0x40) == seen


def test_reading_the_flag_clears_it() -> None:
    m = play(
        f"""
    reset: {SETUP}
        lda #0
        sta $4017
        {delay(40000)}
        lda $4015
        sta $10
        lda $4015
        sta $11
    done: jmp done"""
    )
    assert (m.ram[0x10] & 0x40, m.ram[0x11] & 0x40) == (0x40, 0)


@pytest.mark.parametrize(("written", "kept"), [(0x00, 0x40), (0x80, 0x40), (0x40, 0), (0xC0, 0)])
def test_only_writes_that_inhibit_the_interrupt_clear_the_flag(written: int, kept: int) -> None:
    m = play(
        f"""
    reset: {SETUP}
        lda #0
        sta $4017
        {delay(40000)}
        lda #{written}
        sta $4017
        lda $4015
        sta $10
    done: jmp done"""
    )
    assert m.ram[0x10] & 0x40 == kept


def test_the_first_flag_comes_as_if_4017_had_been_written_before_the_program_began() -> None:
    # 9 to 12 cycles before: a read in cycle 29818 of the program is too early, one in 29824 is not.
    m = play(
        f"""
    reset: sei
        {delay(29818 - 2 - 3)}
        lda $4015
        nop
        ldx $4015
        sta $10
        stx $11
    done: jmp done"""
    )
    assert (m.ram[0x10] & 0x40, m.ram[0x11] & 0x40) == (0, 0x40)


def test_dmc_plays_its_bytes_and_sets_its_flag() -> None:
    # A sample of 17 bytes at the fastest rate: the first byte goes to the buffer at once, then one each 8 x 54 cycles.
    start = "lda #$8f\n sta $4010\n lda #1\n sta $4013\n lda #$10\n sta $4015\n"
    m = play(
        f"""
    reset: sei
        lda #$40
        sta $4017
        {start}
        lda $4015
        sta $10
        {delay(432 * 14)}
        lda $4015
        sta $11
        {delay(432 * 3)}
        lda $4015
        sta $12
        lda $4015
        sta $13
        lda #0
        sta $4015
        lda $4015
        sta $14
    done: jmp done"""
    )
    assert [int(v) & 0x90 for v in m.ram[0x10:0x15]] == [0x10, 0x10, 0x80, 0x80, 0]


def test_a_one_byte_sample_leaves_the_reader_at_once() -> None:
    # 7-dmc_basics: an empty buffer is filled at once, so the sample is over for the next instruction.
    m = play(
        """
    reset: sei
        lda #$40
        sta $4017
        lda #$80
        sta $4010
        lda #0
        sta $4013
        lda #$10
        sta $4015
        lda $4015
        sta $10
        lda #$10
        sta $4015
        lda $4015
        sta $11 ; the second must wait for the buffer
    done: jmp done""",
        frames=1,
    )
    assert [int(v) & 0x90 for v in m.ram[0x10:0x12]] == [0x80, 0x10]


@pytest.mark.parametrize(("rate", "period"), [(0, 428), (7, 214), (15, 54)])
def test_dmc_rates(rate: int, period: int) -> None:
    # 33 bytes take 32 x 8 periods behind the second fetch, whatever the phase at the start.
    m = play(
        f"""
    reset: sei
        lda #$40
        sta $4017
        lda #{rate}
        sta $4010
        lda #0
        sta $4013
        lda #$10
        sta $4015
        {delay(20)}
        sta $4015
    first: lda $4015 ; waits until the buffer moves on: now the phase is known
        and #$10
        bne first
        lda #2
        sta $4013
        lda #$10
        sta $4015
        ldx #0
        ldy #0
    wait: inx
        bne same
        iny
    same: lda $4015
        and #$10
        bne wait
        stx $10
        sty $11
    done: jmp done"""
    )
    # One turn of the loop is 2 + 3 + 4 + 2 + 3 cycles, one more in 256 has 1 more; fetches take 4 each.
    turns = int(m.ram[0x10]) | int(m.ram[0x11]) << 8
    cycles = 14 * turns + 1 * (turns >> 8)
    expected = 33 * 8 * period - 33 * 4
    assert abs(cycles - expected) < 60
