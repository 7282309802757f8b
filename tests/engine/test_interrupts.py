"""Which instruction an interrupt comes behind, and what it finds on the stack."""

from __future__ import annotations

import pytest

from tests.engine.assembler import SYNC as SYNC_VBLANK
from tests.engine.assembler import delay, play
from tests.engine.sound_programs import SETUP, sync


def irq_behind(landing: str, early: int, base: str = "landing") -> int:
    """How many bytes behind `base` an interrupt of the frame counter comes.

    With `early` 0 it comes before the first instruction; each step more lets `landing` begin a cycle earlier.
    """
    m = play(
        f"""
    reset: {SETUP}
        {sync()}
        lda #0
        sta $4017
        cli
        {delay(29833 - early - 1 - 2)}
    landing: {landing}
    done: jmp done
    irq: pha
        txa
        pha
        lda $12
        bne seen
        tsx
        lda $0104,x
        sec
        sbc #<{base}
        sta $10
        lda $0105,x
        sbc #>{base}
        sta $11
        inc $12
    seen: lda #$40
        sta $4017
        pla
        tax
        pla
        rti"""
    )
    assert m.ram[0x12] == 1
    return int(m.ram[0x10]) | int(m.ram[0x11]) << 8


@pytest.mark.parametrize(
    ("early", "behind"),
    [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 4), (6, 4), (7, 7), (8, 7), (9, 7), (10, 7),
     (11, 8), (12, 8), (13, 8), (300, 8), (524, 8), (525, 8), (526, 8), (527, 9)],
)  # fmt: skip
def test_an_irq_during_sprite_dma_waits_for_the_instruction_behind_it(early: int, behind: int) -> None:
    # The table of cpu_interrupts' 4-irq_and_dma. The DMA takes 513 cycles, or 514 from the other half of the sound
    # unit's clock.
    landing = "nop\n nop\n lda #$07\n sta $4014\n nop\n nop\n nop\n" + "nop\n" * 4
    assert irq_behind(landing, early) == behind


@pytest.mark.parametrize(
    ("landing", "table"),
    [
        ("clc\n bcs next\nnext: nop\n lda $0100", [0, 1, 1, 3, 3, 4, 4, 7]),
        ("clc\n bcc next\nnext: nop\n lda $0100", [0, 1, 1, 3, 3, 4, 4, 4, 7]),
        ("nop\n jmp next\nnext: nop\n nop", [0, 1, 1, 4, 4, 4, 5, 5]),
    ],
    ids=["not taken", "taken", "jump"],
)
def test_a_taken_branch_ignores_an_irq_of_its_last_cycle(landing: str, table: list[int]) -> None:
    # As 5-branch_delays_irq has it: a taken branch within a page lets one more instruction run.
    found = [irq_behind(landing, early) for early in range(len(table))]
    assert found == table


def test_a_taken_branch_to_another_page_does_not() -> None:
    # The branch crosses into the page at $9100 and takes four cycles; LDA behind it takes four as well.
    code = "jmp here\n.org $90fb\nhere: clc\n bcc next\n nop\n nop\n nop\n nop\nnext: lda $0100\n nop"
    places = [irq_behind(code, 3 + early, base="here") for early in range(9)]
    assert places == [0, 1, 1, 7, 7, 7, 7, 10, 10]


HANDLERS = """
    nmi: pha
        txa
        pha
        tsx
        lda $0103,x
        sta $10
        lda #0
        sta $2000
        pla
        tax
        pla
        rti
    irq: sec
        pha
        txa
        pha
        tsx
        lda $0103,x
        sta $11
        bit $4015
        pla
        tax
        pla
        rti
"""
"""Both keep the flags that they find on the stack; that of IRQ and BRK begins with SEC, which tells itself."""


def flags_found(code: str) -> list[tuple[tuple[int, int], int]]:
    """What the NMI and the IRQ handler found, for an NMI a cycle later each time; equal ones in a row are counted."""
    found: list[tuple[tuple[int, int], int]] = []
    for offset in range(-16, 6):
        m = play(
            f"""
        reset: ldx #$ff
            txs
            sei
            lda #0
            sta $4017
            {SYNC_VBLANK}
            lda #$80
            sta $2000
            {delay(29781 - 3 - 6 - 16 - offset)}
            {code}
            sei
            lda #$40
            sta $4017
        done: jmp done
        {HANDLERS}"""
        )
        flags = int(m.ram[0x10]), int(m.ram[0x11])
        if found and found[-1][0] == flags:
            found[-1] = flags, found[-1][1] + 1
        else:
            found.append((flags, 1))
    return found


def test_an_nmi_takes_over_a_brk_and_behind_it_waits_for_an_instruction() -> None:
    # 2-nmi_and_brk: twice behind CLC, five times in place of BRK with the break bit on the stack, then behind SEC.
    table = flags_found("sec\n clc\n brk\n .byte $ea\n nop\n nop\n nop\n nop")
    begin = next(i for i, (flags, _) in enumerate(table) if flags == (0x26, 0x36))
    before, behind_clc, taken_over, behind_sec = table[begin - 1 : begin + 3]
    assert before[0] == (0x27, 0x36)
    assert behind_clc == ((0x26, 0x36), 2)
    assert taken_over == ((0x36, 0x00), 5)
    assert behind_sec[0] == (0x27, 0x36)


def test_an_nmi_takes_over_an_irq() -> None:
    # 3-nmi_and_irq: seven times behind CLC, the last five of them in place of the IRQ; then behind SEC in its handler.
    table = flags_found("lda #1\n sec\n cli\n clc\n nop\n nop\n nop\n nop")
    begin = next(i for i, (flags, _) in enumerate(table) if flags == (0x20, 0x20))
    assert table[begin - 1][0] == (0x21, 0x21)
    assert table[begin] == ((0x20, 0x20), 7)
    assert table[begin + 1][0] == (0x25, 0x20)


def irqs_with(code: str, ack: bool = True) -> tuple[int, int, int]:
    """IRQs taken, X at the first, flags on the stack at the first, with an IRQ waiting when `code` runs."""
    m = play(
        f"""
    reset: ldx #$ff
        txs
        sei
        lda #0
        sta $4017
        {delay(40000)}
        ldx #0
        {code}
        sei
        nop
        lda #$40
        sta $4017
    done: jmp done
    irq: pha
        lda $10
        bne counted
        stx $11
        stx $13
        tsx
        lda $0102,x
        sta $12
        ldx $13
    counted: inc $10
        {"bit $4015" if ack else ""}
        pla
        rti""",
        frames=30,
    )
    return int(m.ram[0x10]), int(m.ram[0x11]), int(m.ram[0x12])


def test_one_instruction_runs_behind_cli_before_a_waiting_irq() -> None:
    assert irqs_with("cli\n inx\n inx\n inx")[:2] == (1, 1)


def test_cli_and_sei_let_one_irq_in_with_the_flag_set_on_the_stack() -> None:
    count, x, flags = irqs_with("cli\n sei\n inx\n inx", ack=False)
    assert (count, x) == (1, 0)
    assert flags & 0x04


def test_plp_delays_like_cli_and_rti_does_not() -> None:
    assert irqs_with("lda #0\n pha\n plp\n inx\n inx")[:2] == (1, 1)
    assert irqs_with("lda #>there\n pha\n lda #<there\n pha\n lda #0\n pha\n rti\nthere: inx\n inx")[:2] == (
        1,
        0,
    )


def test_an_irq_that_is_not_acknowledged_lets_no_other_code_run() -> None:
    m = play(
        f"""
    reset: ldx #$ff
        txs
        sei
        lda #0
        sta $4017
        {delay(40000)}
        cli
        nop
        inc $11
    done: jmp done
    irq: inc $10
        rti""",
        frames=10,
    )
    assert m.ram[0x11] == 0
    assert m.ram[0x10] > 1


def test_brk_skips_a_byte_and_sets_the_break_bit_on_the_stack_only() -> None:
    m = play(
        """
    reset: ldx #$ff
        txs
        sei
        brk
        inx ; skipped
        php
        pla
        sta $11
        stx $12
    done: jmp done
    irq: pla
        pha
        sta $10
        rti""",
        frames=5,
    )
    assert m.ram[0x10] & 0x30 == 0x30
    assert m.ram[0x11] & 0x04
    assert m.ram[0x12] == 0xFF
