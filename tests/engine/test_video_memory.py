"""The picture unit's registers and memories as programs see them: buffers, mirrors, data pins, sprite DMA."""

from __future__ import annotations

import pytest

import warpzone
from tests.engine.assembler import cartridge, delay, play


def vram_to(addr: int) -> str:
    return f"lda #{addr >> 8}\n sta $2006\n lda #{addr & 255}\n sta $2006"


def test_video_memory_reads_come_a_read_late() -> None:
    m = play(
        f"""
    reset: {vram_to(0x2400)}
        lda #$12
        sta $2007
        lda #$34
        sta $2007
        {vram_to(0x2400)}
        lda $2007
        lda $2007
        sta $10
        lda $2007
        sta $11
    done: jmp done""",
        frames=3,
    )
    assert list(m.ram[0x10:0x12]) == [0x12, 0x34]


def test_palette_reads_come_at_once_and_fill_the_buffer_from_behind_the_palette() -> None:
    m = play(
        f"""
    reset: {vram_to(0x2F00)}
        lda #$77
        sta $2007
        {vram_to(0x3F00)}
        lda #$ff
        sta $2007
        {vram_to(0x3F00)}
        lda #$80
        sta $2003 ; the palette has six bits, the other two are what was last on the data pins
        lda $2007
        sta $10
        {vram_to(0x0000)}
        lda $2007
        sta $11
    done: jmp done""",
        frames=3,
    )
    assert list(m.ram[0x10:0x12]) == [0xBF, 0x77]


def test_palette_mirrors() -> None:
    pokes = "\n".join(
        f"{vram_to(0x3F00 + at)}\n lda #{at + 1}\n sta $2007" for at in (0x10, 0x14, 0x18, 0x1C, 0x01, 0x11)
    )
    peeks = "\n".join(
        f"{vram_to(0x3F00 + at)}\n lda $2007\n and #$3f\n sta $1{i:x}"
        for i, at in enumerate((0x00, 0x04, 0x08, 0x0C, 0x01, 0x11, 0x21, 0xF1))
    )
    m = play(f"reset: {pokes}\n{peeks}\ndone: jmp done", frames=3)
    assert list(m.ram[0x10:0x18]) == [0x11, 0x15, 0x19, 0x1D, 0x02, 0x12, 0x02, 0x12]


@pytest.mark.parametrize(("vertical", "same"), [(True, 0x2800), (False, 0x2400)])
def test_nametables_are_mirrored_as_the_cartridge_says(vertical: bool, same: int) -> None:
    source = f"""
    reset: {vram_to(0x2000)}
        lda #$5a
        sta $2007
        {vram_to(same)}
        lda $2007
        lda $2007
        sta $10
        {vram_to(0x3000)}
        lda $2007
        lda $2007
        sta $11
    done: jmp done"""
    m = warpzone.Machine(cartridge(source, vertical=vertical))
    m.step(frames=3)
    assert list(m.ram[0x10:0x12]) == [0x5A, 0x5A]


def test_the_address_steps_by_1_or_32() -> None:
    m = play(
        f"""
    reset: lda #4
        sta $2000
        {vram_to(0x2000)}
        lda #1
        sta $2007
        lda #2
        sta $2007
        lda #0
        sta $2000
        {vram_to(0x2020)}
        lda $2007
        lda $2007
        sta $10
    done: jmp done""",
        frames=3,
    )
    assert m.ram[0x10] == 2


def test_sprite_memory_keeps_all_but_three_bits() -> None:
    m = play(
        """
    reset: lda #0
        sta $2003
        ldx #4
    fill: lda #$ff
        sta $2004
        dex
        bne fill
        ldx #0
    look: stx $2003
        lda $2004
        sta $10,x
        inx
        cpx #4
        bne look
    done: jmp done""",
        frames=3,
    )
    assert list(m.ram[0x10:0x14]) == [0xFF, 0xFF, 0xE3, 0xFF]


def test_sprite_dma_begins_at_the_sprite_address_and_wraps() -> None:
    m = play(
        """
    reset: ldx #0
    fill: txa
        sta $0200,x
        inx
        bne fill
        lda #3
        sta $2003
        lda #2
        sta $4014
        lda #3
        sta $2003
        lda $2004
        sta $10
        lda #2
        sta $2003
        lda $2004
        sta $11
    done: jmp done""",
        frames=3,
    )
    assert list(m.ram[0x10:0x12]) == [0, 0xFF & 0xE3]


def cycles_before_the_flag(code: str) -> int:
    """The shortest delay behind `code` with which a read of $2002 sees the first vertical blank."""

    def seen(cycles: int) -> bool:
        m = play(f"reset: lda #2\n {code}\n{delay(cycles)}\n lda $2002\n sta $10\ndone: jmp done", frames=2)
        return bool(m.ram[0x10] & 0x80)

    low, high = 26000, 28000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def test_sprite_dma_takes_513_cycles_or_514() -> None:
    lengths = [
        cycles_before_the_flag(f"{shift}\n sta $0400") - cycles_before_the_flag(f"{shift}\n sta $4014")
        for shift in ("nop", "bit $00", "bit $00\n nop", "bit $00\n bit $00")
    ]
    assert sorted(set(lengths)) == [513, 514]
    assert lengths[0] != lengths[1] == lengths[2] != lengths[3]


def test_the_data_pins_of_the_picture_unit_hold_and_forget() -> None:
    m = play(
        f"""
    reset: lda #$ff
        sta $2002
        lda $2000
        sta $10
        lda $2001
        sta $11
        lda $2003
        sta $12
        lda $2005
        sta $13
        lda $2006
        sta $14
        lda $2002
        sta $15
        {delay(200_000)}
        lda $2000
        sta $16
        {delay(300_000)}
        {delay(300_000)}
        {delay(300_000)}
        {delay(300_000)}
        {delay(300_000)}
        {delay(300_000)}
        lda $2000
        sta $17
    done: jmp done""",
        frames=90,
    )
    held = [int(v) for v in m.ram[0x10:0x18]]
    assert held[:5] == [0xFF] * 5
    assert held[5] & 0x1F == 0x1F
    assert held[6] & 0x1F == 0x1F
    assert held[7] == 0


def test_reading_the_status_refreshes_only_its_three_bits() -> None:
    loops = "\n".join(f"{delay(29780)}\n bit $2002" for _ in range(5))
    m = play(
        f"""
    reset: lda #$1f
        sta $2002
        ldx #12
        stx $20
    again: {loops}
        dec $20
        beq out
        jmp again
    out: lda $2000
        and #$1f
        sta $10
    done: jmp done""",
        frames=80,
    )
    assert m.ram[0x10] == 0
