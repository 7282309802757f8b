"""The sound unit's length counters: when they are clocked, loaded, halted and silenced."""

from __future__ import annotations

import pytest

import warpzone
from tests.engine.assembler import cartridge, delay, play
from tests.engine.sound_programs import SETUP, status_after, sync


@pytest.mark.parametrize(
    ("mode", "loads", "cycle"),
    [(0x00, 0x18, 29832), (0x80, 0x18, 14916), (0x80, 0x28, 52198)],
    ids=["mode 0, second clock", "mode 1, behind the immediate clock", "mode 1, four clocks"],
)
def test_length_counters_are_clocked_to_the_cycle(mode: int, loads: int, cycle: int) -> None:
    assert status_after(mode, cycle - 1, length=loads) & 1
    assert not status_after(mode, cycle, length=loads) & 1


def test_a_length_counter_runs_out_at_its_first_clock_in_mode_0() -> None:
    # Length 2, less one by a first write in mode 1, which clocks at once.
    for cycles, playing in ((14915, True), (14916, False)):
        m = play(
            f"""
        reset: {SETUP}
            {sync()}
            lda #$18
            sta $4003
            lda #$c0
            sta $4017
            nop
            nop
            lda #0
            sta $4017
            {delay(cycles - 4)}
            lda $4015
            sta $10
        done: jmp done"""
        )
        assert bool(m.ram[0x10] & 1) is playing


TABLE = [10, 254, 20, 2, 40, 4, 80, 6, 160, 8, 60, 10, 14, 12, 26, 14,
         12, 16, 24, 18, 48, 20, 96, 22, 192, 24, 72, 26, 16, 28, 32, 30]  # fmt: skip


def test_every_entry_of_the_length_table() -> None:
    m = play(
        f"""
    reset: {SETUP}
        lda #31
        sta $20
    next: lda #0
        sta $4017
        lda $20
        asl a
        asl a
        asl a
        sta $4003
        ldy #0
        ldx #$c0
    count: stx $4017
        {delay(8)}
        iny
        lda $4015
        and #1
        bne count
        ldx $20
        tya
        sta $0300,x
        dec $20
        bpl next
    done: jmp done""",
        frames=20,
    )
    assert list(m.ram[0x300:0x320]) == TABLE


@pytest.mark.parametrize("channel", range(4))
def test_each_channel_can_be_halted_disabled_and_reloaded(channel: int) -> None:
    bit, halt = 1 << channel, 0x80 if channel == 2 else 0x20
    control, load = f"$40{4 * channel:02X}", f"$40{4 * channel + 3:02X}"
    clock = f"ldx #$c0\n stx $4017\n{delay(8)}\n ldx #$c0\n stx $4017\n{delay(8)}"
    m = play(
        f"""
    reset: sei
        lda #$40
        sta $4017
        lda #{bit}
        sta $4015
        lda #{halt}
        sta {control}
        lda #$18
        sta {load}
        {clock}
        lda $4015
        sta $10 ; halted: still 2
        lda #0
        sta {control}
        {clock}
        lda $4015
        sta $11 ; run out
        lda #$18
        sta {load}
        lda #0
        sta $4015
        lda #{bit}
        sta $4015
        lda $4015
        sta $12 ; disabling empties it
        lda #0
        sta $4015
        lda #$18
        sta {load}
        lda #{bit}
        sta $4015
        lda $4015
        sta $13 ; a load while disabled is lost
        lda #$18
        sta {load}
        lda $4015
        sta $14
    done: jmp done""",
        frames=5,
    )
    assert [int(v) & 0x0F for v in m.ram[0x10:0x15]] == [bit, 0, 0, 0, bit]


@pytest.mark.parametrize(
    ("write_at", "was", "becomes", "playing"),
    [(14915, "run", "halt", True), (14916, "run", "halt", False),
     (14915, "halt", "run", False), (14916, "halt", "run", True)],
)  # fmt: skip
def test_halting_in_the_cycle_of_a_clock_comes_too_late(
    write_at: int, was: str, becomes: str, playing: bool
) -> None:
    value = {"run": "$10", "halt": "$30"}
    m = play(
        f"""
    reset: {SETUP}
        {sync()}
        lda #$18
        sta $4003
        lda #$c0
        sta $4017
        lda {value[was].replace("$", "#$")}
        sta $4000
        lda #0
        sta $4017
        {delay(write_at - 2 - 4)}
        lda {value[becomes].replace("$", "#$")}
        sta $4000
        {delay(100)}
        lda $4015
        sta $10
    done: jmp done"""
    )
    assert bool(m.ram[0x10] & 1) is playing


def length_left(write_at: int, loaded: int, reload: int) -> int:
    """Clocks until silence behind a reload written `write_at` cycles behind the write that began mode 0."""
    m = play(
        f"""
    reset: {SETUP}
        {sync()}
        lda #{loaded}
        sta $4003
        lda #0
        sta $4017
        {delay(write_at - 2 - 4)}
        lda #{reload}
        sta $4003
        ldy #0
        ldx #$c0
    count: lda $4015
        and #1
        beq silent
        stx $4017
        {delay(8)}
        iny
        bne count
    silent: sty $10
    done: jmp done"""
    )
    return int(m.ram[0x10])


def test_a_reload_in_the_cycle_of_a_clock_is_lost_unless_the_counter_is_empty() -> None:
    # Load 2 (one clock left behind the one at 14916); reload with 6.
    assert length_left(14915, 0x18, 0x38) == 5  # loaded, then clocked
    assert length_left(14916, 0x18, 0x38) == 1  # the reload is lost
    assert length_left(14917, 0x18, 0x38) == 6  # clocked, then loaded
    assert length_left(14916, 0x58, 0x38) == 9


def test_length_counters_run_again_behind_the_reset_button() -> None:
    source = f"""
    reset: sei
        lda #$40
        sta $4017
        lda #$0f
        sta $4015
        lda #$18
        sta $4003
        sta $4007
        sta $400b
        sta $400f
        ldx #3
    clocks: lda #$c0
        sta $4017
        {delay(10)}
        dex
        bne clocks
        lda $4015
        ldx $20
        sta $10,x
        inc $20
        lda #$ff ; halts all four
        sta $4000
        sta $4004
        sta $4008
        sta $400c
    done: jmp done"""
    m = warpzone.Machine(cartridge(source))
    m.step(frames=3)
    m.reset()
    m.step(frames=3)
    assert [int(v) & 0x0F for v in m.ram[0x10:0x12]] == [0, 0x04]
