"""Finding the areas in a ROM: by the shape of the code that reads the tables, not by address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from warpzone.errors import RomError
from warpzone.levels.format import AREA_COUNTS, ENEMIES_END, LONGEST_STREAM, OBJECTS_END
from warpzone.levels.kinds import AreaType

HEADER_BYTES, PRG_START, PRG_BYTES = 16, 0x8000, 0x8000
AREAS = sum(AREA_COUNTS.values())
STAGE_LIST_BYTES = 36
_FIRST = dict(zip(AREA_COUNTS, (0, 3, 25, 28), strict=True))
"""Place of the first area of a type in the table of area data."""

# STA $074F / LDA offsets,Y / CLC / ADC $074F / TAY / LDA table,Y / STA $E9; $EA; then $E7 and $E8 in the same way.
_READ_POINTERS = re.compile(
    rb"\x8d\x4f\x07\xb9(..)\x18\x6d\x4f\x07\xa8\xb9(..)\x85\xe9\xb9(..)\x85\xea"
    rb"\xac\x4e\x07\xb9(..)\x18\x6d\x4f\x07\xa8\xb9(..)\x85\xe7\xb9(..)\x85\xe8",
    re.DOTALL,
)
# LDY $075F / LDA worlds,Y / CLC / ADC $0760 / TAY / LDA areas,Y / RTS
_READ_STAGE = re.compile(rb"\xac\x5f\x07\xb9(..)\x18\x6d\x60\x07\xa8\xb9(..)\x60", re.DOTALL)


@dataclass(frozen=True)
class Tables:
    """Where a ROM has its areas: addresses, and the places in the image whose operands name them."""

    image: bytes
    prg: bytes
    operands: dict[str, int]
    """Table to the place of its address in the program."""

    def address(self, table: str) -> int:
        at = self.operands[table]
        return self.prg[at] | self.prg[at + 1] << 8

    def bytes_at(self, address: int, count: int) -> bytes:
        at = address - PRG_START
        return self.prg[max(at, 0) : max(at, 0) + count]

    def table(self, name: str, count: int = AREAS) -> bytes:
        return self.bytes_at(self.address(name), count)

    def offset(self, kind: str, area_type: AreaType) -> int:
        """Place of the first area of a type in the tables of "area" or "enemy" pointers."""
        return self.table(f"{kind}_offsets", 4)[area_type.value]

    def pointer(self, kind: str, area: int) -> int:
        """Address of the "area" or "enemy" data of an area."""
        at = self.offset(kind, AreaType(area // 32)) + area % 32
        return self.table(f"{kind}_low")[at] | self.table(f"{kind}_high")[at] << 8

    def stage_place(self, stage: str) -> int:
        """Place of a stage's main area in the list of areas, behind its walk-in."""
        world, number = int(stage[0]), int(stage[2])
        first = self.table("worlds", 8)[world - 1]
        areas = self.table("stages", STAGE_LIST_BYTES)
        after = self.table("worlds", 8)[world] if world < 8 else STAGE_LIST_BYTES
        # A world with five areas has a walk-in before its second stage.
        walk_in = 1 if after - first > 4 and number > 1 else 0
        if first + number - 1 + walk_in >= len(areas):
            raise RomError("The ROM's list of stages is not that of Super Mario Bros.")
        return first + number - 1 + walk_in

    def area_of(self, stage: str) -> int:
        """The number of a stage's main area."""
        return self.table("stages", STAGE_LIST_BYTES)[self.stage_place(stage)] & 0x7F


@lru_cache(maxsize=8)
def tables(rom: bytes) -> Tables:
    """The tables of a ROM image. Raises RomError for another game."""
    start = HEADER_BYTES + (512 if len(rom) > 6 and rom[6] & 4 else 0)
    prg = rom[start : start + PRG_BYTES]
    pointers, stages = _READ_POINTERS.search(prg), _READ_STAGE.search(prg)
    if len(prg) < PRG_BYTES or pointers is None or stages is None:
        raise RomError("The ROM has no areas that can be read: give one of Super Mario Bros.")
    names = ("enemy_offsets", "enemy_low", "enemy_high", "area_offsets", "area_low", "area_high")
    operands = {name: pointers.start(i + 1) for i, name in enumerate(names)}
    operands |= {"worlds": stages.start(1), "stages": stages.start(2)}
    found = Tables(rom, prg, operands)
    firsts = bytes(_FIRST[kind] for kind in AreaType)
    whole = all(len(found.table(name, STAGE_LIST_BYTES)) == STAGE_LIST_BYTES for name in operands)
    foes = [
        first + AREA_COUNTS[kind]
        for kind, first in zip(AreaType, found.table("enemy_offsets", 4), strict=False)
    ]
    low = any(found.address(name) < PRG_START for name in operands)
    if low or not whole or max(foes) > AREAS or found.table("area_offsets", 4) != firsts:
        raise RomError("The ROM's areas are counted in another way than those of Super Mario Bros.")
    return found


def all_areas() -> list[int]:
    """The numbers of the 34 areas, in the order of the game's table."""
    return [kind.value * 32 + i for kind, count in AREA_COUNTS.items() for i in range(count)]


def area_data(found: Tables, area: int) -> bytes:
    """Header and objects of an area, with the byte that ends them."""
    data = found.bytes_at(found.pointer("area", area), LONGEST_STREAM)
    for at in range(2, len(data), 2):
        if data[at] == OBJECTS_END:
            return data[: at + 1]
    raise RomError(f"The objects of area {area} have no end: the ROM is not Super Mario Bros.")


def enemy_data(found: Tables, area: int) -> bytes:
    """Enemies of an area, with the byte that ends them."""
    data = found.bytes_at(found.pointer("enemy", area), LONGEST_STREAM)
    at = 0
    while at < len(data):
        if data[at] == ENEMIES_END:
            return data[: at + 1]
        at += 3 if data[at] & 15 == 14 else 2
    raise RomError(f"The enemies of area {area} have no end: the ROM is not Super Mario Bros.")
