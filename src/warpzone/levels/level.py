"""A level, and reading one from the ROM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpzone.errors import ConfigError, RomError
from warpzone.levels import drawing
from warpzone.levels.format import LevelData, decode_enemies, decode_header, decode_objects
from warpzone.levels.kinds import AreaType
from warpzone.levels.tables import all_areas, area_data, enemy_data, tables

STAGES = [f"{world}-{number}" for world in range(1, 9) for number in range(1, 5)]


@dataclass(frozen=True)
class Level(LevelData):
    """A level: read from the ROM by `decode`, generated, or built by hand.

    What the game's format can't express is refused with a sentence.
    """

    def draw(self, rom: bytes | None = None) -> NDArray[np.uint8]:
        """The whole level as the game shows it, uint8 [208, width, 3], with enemies where they wait."""
        return drawing.draw(self, rom)

    def text(self, rom: bytes | None = None) -> str:
        """The whole level in letters: 13 lines, one letter for each block."""
        return drawing.text(self, rom)


def decode(rom: bytes, stage: str | int) -> Level:
    """The main area of a stage such as '1-1', or an area by its number (see `all_areas`)."""
    found = tables(bytes(rom))
    if isinstance(stage, int) and not isinstance(stage, bool):
        area = stage
        if area not in all_areas():
            raise ConfigError(f"The game has no area {area}: see warpzone.levels.all_areas().")
        host = next((name for name in STAGES if found.area_of(name) == area), "1-1")
        name = f"area {area}"
    else:
        if stage not in STAGES:
            raise ConfigError(f"There is no stage {stage!r}: stages are '1-1' to '8-4'.")
        area, host, name = found.area_of(stage), str(stage), str(stage)
    if area not in all_areas():
        raise RomError(f"The ROM has no area {area}, which its stage {host} names.")
    data, foes = area_data(found, area), enemy_data(found, area)
    return Level(
        objects=tuple(decode_objects(data)), enemies=tuple(decode_enemies(foes)), header=decode_header(data),
        type=AreaType(area // 32), stage=host, number=area % 32, name=name,
    )  # fmt: skip
