"""Levels in the engine: a ROM image whose tables of areas lie in work RAM, and what is to be there for a level.

Only operands of the program change, so one image, and one translation of it, serves every level and the game's own
stages beside them. The image is never written to a file.
"""

from __future__ import annotations

from functools import lru_cache

from warpzone.errors import RomError
from warpzone.levels.format import LONGEST_STREAM, LevelData, encode_area, encode_enemies
from warpzone.levels.tables import AREAS, HEADER_BYTES, PRG_BYTES, STAGE_LIST_BYTES, Tables, tables

WORK_RAM = 0x6000
MEMORY_BYTES = 0x800
"""How much of the work RAM a level takes."""
_AREA_DATA, _ENEMY_DATA = 0x600, 0x700
_MOVED = {
    "enemy_low": AREAS, "enemy_high": AREAS, "area_low": AREAS, "area_high": AREAS, "stages": STAGE_LIST_BYTES,
}  # fmt: skip
"""The tables that move to work RAM, and their sizes."""


def _places(found: Tables) -> dict[str, int]:
    """Where each table lies in work RAM. The low bytes of addresses stay, and with them the time that reads take."""
    first = min(found.address(name) for name in _MOVED) & 0xFF00
    places = {name: found.address(name) - first for name in _MOVED}
    if max(places.values()) + STAGE_LIST_BYTES > _AREA_DATA:
        raise RomError("The ROM's tables of areas lie too far apart: it is not Super Mario Bros.")
    return places


@lru_cache(maxsize=4)
def level_image(rom: bytes) -> bytes:
    """The ROM image with its tables of areas in work RAM."""
    found = tables(rom)
    start = rom.index(found.prg, HEADER_BYTES)
    prg = bytearray(found.prg)
    for name, place in _places(found).items():
        at = found.operands[name]
        prg[at : at + 2] = (WORK_RAM + place).to_bytes(2, "little")
    return rom[:start] + bytes(prg) + rom[start + PRG_BYTES :]


@lru_cache(maxsize=4)
def stage_memory(rom: bytes) -> bytes:
    """The work RAM with which that image plays the game's own stages."""
    found = tables(rom)
    memory = bytearray(MEMORY_BYTES)
    for name, place in _places(found).items():
        memory[place : place + _MOVED[name]] = found.table(name, _MOVED[name])
    return bytes(memory)


def level_memory(rom: bytes, level: LevelData) -> bytes:
    """The work RAM with which that image plays a level in the place of its stage."""
    found = tables(rom)
    places = _places(found)
    memory = bytearray(stage_memory(rom))
    for kind, place, data in (
        ("area", _AREA_DATA, encode_area(level)),
        ("enemy", _ENEMY_DATA, encode_enemies(level)),
    ):
        assert len(data) <= LONGEST_STREAM
        memory[place : place + len(data)] = data
        entry = found.offset(kind, level.type) + level.number
        memory[places[f"{kind}_low"] + entry] = place & 0xFF
        memory[places[f"{kind}_high"] + entry] = (WORK_RAM + place) >> 8
    if found.area_of(level.stage) != level.area:
        memory[places["stages"] + found.stage_place(level.stage)] = level.area
    return bytes(memory)
