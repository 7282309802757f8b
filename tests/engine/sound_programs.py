"""Programs that set the sound unit up and find the cycle on which it acts."""

from __future__ import annotations

from tests.engine.assembler import delay, play

SETUP = """
    ldx #$ff
    txs
    sei
    lda #$40
    sta $4017
    lda #$01
    sta $4015
    lda #$10
    sta $4000
    lda #$7f
    sta $4001
    lda #$ff
    sta $4002
"""
# The counter restarts on the unit's own half-rate clock: find the half on which a write acts a cycle sooner.
SYNC = """
    lda #$40
    sta $4017
    lda #$00
    sta $4017
    {wait}
    lda $4015
    and #$40
    bne {label}
{label}: lda #$40
    sta $4017
"""


def sync(label: str = "aligned") -> str:
    return SYNC.format(wait=delay(29827), label=label)


def status_after(
    mode: int, cycles: int, *, length: int | None = None, between: str = "", spent: int = 0
) -> int:
    """$4015 as read `cycles` cycles behind a write of `mode` to $4017 that acted without an extra cycle."""
    load = f"lda #{length}\n sta $4003" if length is not None else ""
    m = play(
        f"""
    reset: {SETUP}
        {sync()}
        {load}
        lda #{mode}
        sta $4017
        {between}
        {delay(cycles - 4 - spent)}
        lda $4015
        sta $10
    done: jmp done"""
    )
    return int(m.ram[0x10])
