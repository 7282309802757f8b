"""A small 6502 assembler, and cartridges made of it: the tests' own test ROMs."""

from __future__ import annotations

import re

import warpzone

_TABLE = (
    "BRKORAJAMSLONOPORAASLSLOPHPORAASLANCNOPORAASLSLOBPLORAJAMSLONOPORAASLSLOCLCORANOPSLONOPORAASLSLO"
    "JSRANDJAMRLABITANDROLRLAPLPANDROLANCBITANDROLRLABMIANDJAMRLANOPANDROLRLASECANDNOPRLANOPANDROLRLA"
    "RTIEORJAMSRENOPEORLSRSREPHAEORLSRALRJMPEORLSRSREBVCEORJAMSRENOPEORLSRSRECLIEORNOPSRENOPEORLSRSRE"
    "RTSADCJAMRRANOPADCRORRRAPLAADCRORARRJMPADCRORRRABVSADCJAMRRANOPADCRORRRASEIADCNOPRRANOPADCRORRRA"
    "NOPSTANOPSAXSTYSTASTXSAXDEYNOPTXAXAASTYSTASTXSAXBCCSTAJAMSHASTYSTASTXSAXTYASTATXSTASSHYSTASHXSHA"
    "LDYLDALDXLAXLDYLDALDXLAXTAYLDATAXLXALDYLDALDXLAXBCSLDAJAMLAXLDYLDALDXLAXCLVLDATSXLASLDYLDALDXLAX"
    "CPYCMPNOPDCPCPYCMPDECDCPINYCMPDEXAXSCPYCMPDECDCPBNECMPJAMDCPNOPCMPDECDCPCLDCMPNOPDCPNOPCMPDECDCP"
    "CPXSBCNOPISCCPXSBCINCISCINXSBCNOPSBCCPXSBCINCISCBEQSBCJAMISCNOPSBCINCISCSEDSBCNOPISCNOPSBCINCISC"
)
_NAMES = [_TABLE[i : i + 3] for i in range(0, len(_TABLE), 3)]


def _mode(op: int) -> str:
    row, column, odd = op >> 4, op & 15, op >> 4 & 1
    by_y = row in (9, 11) and column & 2
    if op == 0x20:
        return "abs"
    if op == 0x6C:
        return "ind"
    if column == 0:
        return "rel" if odd else "imm" if row >= 8 else "imp"
    if column in (1, 3):
        return "izy" if odd else "izx"
    if column == 2:
        return "imm" if row >= 8 and not odd else "imp"
    if column in (8, 10):
        return "imp"
    if column in (9, 11):
        return "aby" if odd else "imm"
    if column < 8:
        return ("zpy" if by_y else "zpx") if odd else "zp"
    return ("aby" if by_y else "abx") if odd else "abs"


_OPCODES: dict[tuple[str, str], int] = {}
for _op in [*range(256), 0xEA]:
    _OPCODES[_NAMES[_op], _mode(_op)] = _op
_OPCODES["SBC", "imm"] = 0xE9

_SHAPES = (
    (r"#(.+)", "imm"),
    (r"\((.+),x\)", "izx"),
    (r"\((.+)\),y", "izy"),
    (r"\((.+)\)", "ind"),
    (r"(.+),x", "x"),
    (r"(.+),y", "y"),
    (r"(.+)", ""),
)

PREAMBLE_END = 0x8100

# The wait of `delay`: X and Y hold how long. Stands at the start of the ROM so that its branches stay in one page.
_WAIT = bytes([0xCA, 0xD0, 0xFD, 0x88, 0xD0, 0xFA, 0x60])
_WAIT_AT = 0x8000


def delay(cycles: int) -> str:
    """Code that takes just so many cycles. Longer ones change X, Y and flags."""
    assert cycles >= 0
    assert cycles != 1
    lines: list[str] = []
    if cycles >= 40:
        high = (cycles - 30) // 1284
        low = min(256, (cycles - 21 - high * 1284) // 5)
        lines += [f"ldx #{low & 255}", f"ldy #{high + 1}", f"jsr {_WAIT_AT}"]
        cycles -= 19 + 5 * low + high * 1284
        if cycles == 1 or cycles >= 40:
            raise AssertionError("delay cannot be made")
    if cycles & 1:
        lines.append("bit $00")
        cycles -= 3
    lines += ["nop"] * (cycles // 2)
    return "\n".join(lines)


class Assembled:
    """Code with its labels."""

    def __init__(self, source: str, origin: int = PREAMBLE_END) -> None:
        self.labels: dict[str, int] = {}
        self.image = bytearray(0x8000)
        self.image[0 : len(_WAIT)] = _WAIT
        self._pass(source, origin, final=False)
        self._pass(source, origin, final=True)

    def _value(self, text: str, final: bool) -> int:
        text = text.strip()
        part = None
        if text[:1] in "<>":
            part, text = text[0], text[1:]
        total = 0
        for sign, term in re.findall(r"([+-]?)\s*([^+-]+)", text):
            term = term.strip()
            if term.startswith("$"):
                value = int(term[1:], 16)
            elif term.isdigit():
                value = int(term)
            elif term in self.labels:
                value = self.labels[term]
            elif final:
                raise AssertionError(f"unknown label {term!r}")
            else:
                value = 0x8888
            total += -value if sign == "-" else value
        return total & 255 if part == "<" else total >> 8 & 255 if part == ">" else total

    def _pass(self, source: str, origin: int, final: bool) -> None:
        at = origin
        for line in source.splitlines():
            line = line.split(";")[0].strip()
            while match := re.match(r"(\w+):\s*", line):
                self.labels[match[1]] = at
                line = line[match.end() :]
            if not line:
                continue
            word, _, operand = line.partition(" ")
            operand = operand.strip().replace(", ", ",")
            if word == ".org":
                at = self._value(operand, final)
                continue
            if word == ".byte":
                out = [self._value(item, final) & 255 for item in operand.split(",")]
            elif word == ".word":
                values = [self._value(item, final) for item in operand.split(",")]
                out = [b for v in values for b in (v & 255, v >> 8 & 255)]
            else:
                out = self._instruction(word.upper(), operand, at, final)
            self.image[at - 0x8000 : at - 0x8000 + len(out)] = bytes(out)
            at += len(out)

    def _instruction(self, name: str, operand: str, at: int, final: bool) -> list[int]:
        if not operand or operand.lower() == "a":
            return [_OPCODES[name, "imp"]]
        match, kind = next(
            (found, kind)
            for pattern, kind in _SHAPES
            if (found := re.fullmatch(pattern, operand, re.IGNORECASE))
        )
        value = self._value(match[1], final)
        if (name, "rel") in _OPCODES:
            offset = value - (at + 2)
            assert not final or -128 <= offset <= 127, f"{name} {operand} is too far"
            return [_OPCODES[name, "rel"], offset & 255]
        if kind in ("imm", "izx", "izy"):
            return [_OPCODES[name, kind], value & 255]
        if kind == "ind":
            return [_OPCODES[name, "ind"], value & 255, value >> 8]
        short, long = {"": ("zp", "abs"), "x": ("zpx", "abx"), "y": ("zpy", "aby")}[kind]
        # Two digits mean the zero page; four mean an absolute address even there.
        if (
            re.fullmatch(r"\$[0-9a-fA-F]{1,2}|\d{1,3}", match[1].strip())
            and value < 256
            and (name, short) in _OPCODES
        ):
            return [_OPCODES[name, short], value]
        return [_OPCODES[name, long], value & 255, value >> 8 & 255]


def cartridge(source: str, chr_rom: bytes | None = None, vertical: bool = True) -> bytes:
    """An iNES image. The program starts at `reset`; `nmi` and `irq` are its handlers, if it has them.

    Without `chr_rom` tile 0 is empty, tile 1 solid, tile 2 has one pixel at its top left, the rest are empty.
    """
    code = Assembled(source)
    vectors = [code.labels.get(name, code.labels["reset"]) for name in ("nmi", "reset", "irq")]
    code.image[0x7FFA:] = b"".join(v.to_bytes(2, "little") for v in vectors)
    if chr_rom is None:
        tiles = bytearray(0x2000)
        tiles[16:32] = b"\xff" * 16
        tiles[32] = 0x80
        tiles[0x1010:0x1020] = b"\xff" * 16
        chr_rom = bytes(tiles)
    header = b"NES\x1a" + bytes([2, 1, 1 if vertical else 0]) + bytes(9)
    return header + bytes(code.image) + chr_rom


def play(source: str, frames: int = 60, region: str = "ntsc", **step: bool) -> warpzone.Machine:
    """Run a program for some frames; it ends by jumping to itself with its results in memory."""
    machine = warpzone.Machine(cartridge(source), region=region)
    machine.step(0, frames=frames, render=False, **step)
    return machine


SYNC = f"""
; Leaves the program just behind a read of $2002 that saw the flag in the first dot it can be seen in. A frame has
; 29780 2/3 cycles with drawing off, so a loop of 29781 comes a dot later each time.
sync_vblank:
    lda #0
    sta $2000
    sta $2001
    bit $2002
wait_for_it:
    bit $2002
    bpl wait_for_it
    {delay(29760)}
    jmp first_try
try_again:
    {delay(29781 - 11)}
first_try:
    bit $2002
    bit $2002
    bpl try_again
"""
"""Inline code: the cycle of the last read is R; the next instruction but one (behind BPL) begins in R + 3."""


def at_dot(offset: int, instruction_cycles: int, *, lead: int = 0, odd: bool = False) -> str:
    """Delay until an access `offset` dots behind the dot in which the vertical blank flag rises.

    Use behind SYNC; the access is in the last of the `instruction_cycles` cycles of an instruction that follows after
    `lead` cycles of other code. `odd` picks the other one of two successive kinds of frame.
    """
    # R came one dot behind the rise. k frames of 29781 cycles are k dots more, a cycle less is three dots less.
    for frames in range(4 if odd else 1, 60):
        dots = offset - 1 - frames
        if dots % 3 == 0:
            wait = 29781 * frames + dots // 3 - 3 - lead - (instruction_cycles - 1)
            if wait >= 40:
                return delay(wait)
    raise AssertionError("no such moment")
