"""Buses, controllers and reset as programs see them: open bus, double writes, odd places to run, power-on."""

from __future__ import annotations

import numpy as np
import pytest

import warpzone
from tests.engine.assembler import cartridge, play


def test_unmapped_addresses_read_as_the_last_byte_on_the_bus() -> None:
    m = play(
        """
    reset: lda $4018
        sta $10
        lda $5123
        sta $11
        ldx #$20
        lda $40f0,x ; the index crosses the page, the bus still holds $40
        sta $12
        lda $4000
        sta $13
    done: jmp done""",
        frames=3,
    )
    assert list(m.ram[0x10:0x14]) == [0x40, 0x51, 0x40, 0x40]


def test_read_modify_write_writes_twice() -> None:
    # INC $2004 at sprite address 0: writes the old value to byte 0 and the new one to byte 1.
    m = play(
        """
    reset: lda #0
        sta $2003
        lda #$41
        sta $2004
        lda #0
        sta $2003
        inc $2004
        lda #0
        sta $2003
        lda $2004
        sta $10
        lda #1
        sta $2003
        lda $2004
        sta $11
    done: jmp done""",
        frames=3,
    )
    assert list(m.ram[0x10:0x12]) == [0x41, 0x42]


@pytest.mark.parametrize(
    ("code", "touches"),
    [("lda $3ff2,x", True), ("lda $3ff2,y", True), ("sta $3ff2,x", True), ("sta $3ff2,y", True), ("lda ($20),y", True),
     ("sta ($20),y", True), ("asl $3ff2,x", True), ("lax $3ff2,y", True), ("sta $3ef2,x", True), ("lda $4002", False),
     ("lda $3ff1,x", False), ("sta $3ff1,x", False)],
)  # fmt: skip
def test_indexed_accesses_look_at_the_wrong_page_first(code: str, touches: bool) -> None:
    # $3FF2 + $10 is $4002, a register without a reader; the wrong page gives $3F02, which is the status register and
    # resets the toggle between the two writes of an address.
    m = play(
        f"""
    reset: lda #$f2
        sta $20
        lda #$3f
        sta $21
        ldx #$10
        ldy #$10
        bit $2002
        lda #$21
        sta $2006
        {code}
        lda #$23
        sta $2006
        lda #$45
        sta $2006
        lda #$99
        sta $2007
        bit $2002
        lda #$23
        sta $2006
        lda #$45
        sta $2006
        lda $2007
        lda $2007
        sta $10
    done: jmp done""",
        frames=3,
    )
    assert bool(m.ram[0x10] == 0x99) is touches


def test_the_stack_wraps_in_its_page() -> None:
    m = play(
        """
    reset: ldx #0
        txs
        lda #$11
        pha
        lda #$22
        pha
        tsx
        stx $10
        pla
        pla
        tsx
        stx $11
    done: jmp done""",
        frames=3,
    )
    assert (m.ram[0x100], m.ram[0x1FF]) == (0x11, 0x22)
    assert list(m.ram[0x10:0x12]) == [0xFE, 0x00]


def test_controllers_shift_out_eight_buttons_and_then_ones() -> None:
    source = """
    reset: lda #0
        sta $2000
    frame: bit $2002
        bpl frame
        lda #1
        sta $4016
        lda #0
        sta $4016
        ldx #0
    bits: lda $4016
        sta $0300,x
        lda $4017
        sta $0320,x
        inx
        cpx #10
        bne bits
        jmp frame"""
    m = warpzone.Machine(cartridge(source))
    m.step(0b10010011, frames=3, buttons2=0b01100100, render=False)
    assert [int(v) & 1 for v in m.ram[0x300:0x30A]] == [1, 1, 0, 0, 1, 0, 0, 1, 1, 1]
    assert [int(v) & 1 for v in m.ram[0x320:0x32A]] == [0, 0, 1, 0, 0, 1, 1, 0, 1, 1]
    assert all(int(v) & 0xE0 == 0x40 for v in m.ram[0x300:0x30A])
    assert not m.lagged


def test_a_frame_without_a_controller_read_is_lagged() -> None:
    m = play("reset: jmp reset", frames=3)
    assert m.lagged


@pytest.mark.parametrize(
    ("opcode", "enter"),
    [(0x60, "jsr $2001"), (0x60, "lda #>back\n pha\n lda #<back-1\n pha\n jmp $2001"),
     (0x40, "lda #>back\n pha\n lda #<back\n pha\n php\n jmp $2001"), (0x00, "jmp $2001")],
    ids=["JSR and RTS", "JMP and RTS", "JMP and RTI", "JMP and BRK"],
)  # fmt: skip
def test_programs_run_from_the_registers_of_the_picture_unit(opcode: int, enter: str) -> None:
    # The data pins hold the opcode; running it reads the byte behind, $2002, which resets the toggle of $2006.
    m = play(
        f"""
    reset: ldx #$ff
        txs
        lda #$3f
        sta $2006 ; half an address: the toggle is set
        lda #{opcode}
        sta $2003
        {enter}
    back: lda #$23
        sta $2006
        lda #$77
        sta $2006
        lda #$5c
        sta $2007
        lda #$23
        sta $2006
        lda #$77
        sta $2006
        lda $2007
        lda $2007
        sta $10
    done: jmp done
    irq: pla
        pla
        pla
        jmp back""",
        frames=5,
    )
    assert m.ram[0x10] == 0x5C
    assert not m.jammed


def test_programs_run_from_ram_and_cartridge_ram() -> None:
    m = play(
        """
    reset: lda #$e6
        sta $0300
        sta $6000
        lda #$10
        sta $0301
        sta $6001
        lda #$60
        sta $0302
        sta $6002
        jsr $0300
        jsr $6000
        jsr $0b00 ; a mirror of $0300
    done: jmp done""",
        frames=3,
    )
    assert m.ram[0x10] == 3


def test_registers_and_memory_at_power_on_and_behind_the_reset_button() -> None:
    source = """
    reset: php
        sta $0310
        stx $0311
        sty $0312
        pla
        sta $0313
        tsx
        stx $0314
        inc $0315
        ldx #$80
        txs
        lda #$aa
        ldx #$bb
        ldy #$cc
        clc
        cli
    done: jmp done
    irq: bit $4015
        rti"""
    m = warpzone.Machine(cartridge(source))
    m.step(frames=3)
    assert [int(v) for v in m.ram[0x310:0x316]] == [0, 0, 0, 0x34, 0xFD, 1]
    m.ram[0x0400] = 0x77
    m.reset()
    m.step(frames=3)
    a, x, y, p, s, count = (int(v) for v in m.ram[0x310:0x316])
    assert (a, x, y, s, count) == (0xAA, 0xBB, 0xCC, 0x7D, 2)
    assert p & 0x05 == 0x04  # interrupts are off again, the carry is as it was
    assert m.ram[0x0400] == 0x77


def test_reset_stops_the_picture_and_the_sound() -> None:
    source = """
    reset: lda $0300
        bne second
        inc $0300
        lda #$90
        sta $2000
        lda #$1f
        sta $4015
        lda #$ff
        sta $4003
    loop: jmp loop
    nmi: inc $0302
        rti
    second: lda $4015
        sta $0301
    done: jmp done"""
    m = warpzone.Machine(cartridge(source))
    m.step(frames=5)
    counted = int(m.ram[0x302])
    assert counted >= 3
    m.reset()
    m.step(frames=5)
    assert m.ram[0x301] & 0x1F == 0
    assert m.ram[0x302] == counted


def test_test_programs_report_through_cartridge_ram_and_may_ask_for_a_reset() -> None:
    # The protocol of public test ROMs: $6001 holds DE B0 61, $6000 the status ($80 running, $81 reset me), $6004 text.
    source = """
    reset: lda $6001
        cmp #$de
        beq second
        lda #$80
        sta $6000
        lda #$de
        sta $6001
        lda #$b0
        sta $6002
        lda #$61
        sta $6003
        lda #$81
        sta $6000
    wait: jmp wait
    second: ldx #0
    text: lda message,x
        sta $6004,x
        beq out
        inx
        bne text
    out: lda #0
        sta $6000
    done: jmp done
    message: .byte 80,97,115,115,101,100,10,0"""
    m = warpzone.Machine(cartridge(source))
    m.step(frames=2)
    assert bytes(m.wram[1:4]) == b"\xde\xb0\x61"
    assert m.wram[0] == 0x81
    m.step(frames=6)
    m.reset()
    m.step(frames=2)
    assert m.wram[0] == 0
    assert bytes(m.wram[4:11]) == b"Passed\n"
    assert np.all(m.wram[12:] == 0)


def test_peek_reads_every_memory_without_touching_it() -> None:
    m = warpzone.Machine(cartridge("reset: lda #$42\n sta $10\n sta $6005\ndone: jmp done"))
    m.step(frames=2)
    assert (m.peek(0x0010), m.peek(0x0810), m.peek(0x6005), m.peek(0x8100)) == (0x42, 0x42, 0x42, 0xA9)
    before = m.save()
    for addr in (0x2002, 0x2007, 0x4015, 0x4016):
        m.peek(addr)
    assert m.save() == before
