"""Levels beside stages: the image, memory and names with which the engine plays both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpzone.envs.stages import parse_stage
from warpzone.errors import ConfigError
from warpzone.levels.format import LevelData
from warpzone.levels.image import level_image, level_memory, stage_memory

if TYPE_CHECKING:
    from warpzone.engine._native import PoolSettings


@dataclass(frozen=True)
class Play:
    """What an environment can begin with: the place in the game, and the bytes at $6000."""

    world: int
    stage: int
    memory: bytes


class LevelStages:
    """The stages and levels of a vector, as the engine has them."""

    def __init__(
        self, image: bytes, names: Sequence[str], levels: Sequence[LevelData], lost_levels: bool
    ) -> None:
        levels = list(levels) if isinstance(levels, Iterable) else []
        if not levels or not all(isinstance(level, LevelData) for level in levels):
            raise ConfigError(
                "levels holds at least one level, as levels.decode and levels.generate give them."
            )
        if lost_levels:
            raise ConfigError("Levels are played with the ROM of Super Mario Bros, not with the Lost Levels.")
        if "game" in names:
            raise ConfigError("Levels can't be mixed with the whole game: name stages such as '1-1'.")
        self._rom = image
        self.image = level_image(image)
        self.levels = dict(zip(level_names(levels, names), levels, strict=True))
        self.names = [*names, *self.levels]

    def settings(self) -> PoolSettings:
        """What the engine's pool needs to know."""
        plays = [self.play_of(self.levels.get(name, name)) for name in self.names]
        return {
            "stages": [(p.world, p.stage) for p in plays], "memories": [p.memory for p in plays], "levels": True,
        }  # fmt: skip

    def play_of(self, what: str | LevelData) -> Play:
        """What the engine needs to begin with it."""
        return play_of(self._rom, what)


def play_of(image: bytes, what: str | LevelData) -> Play:
    """A stage of the game, or a level, with the image that plays levels."""
    if isinstance(what, str):
        return Play(*parse_stage(what), stage_memory(image))
    if not isinstance(what, LevelData):
        raise ConfigError(
            f"levels holds levels such as levels.decode and levels.generate give, not {what!r}."
        )
    if what.header.timer == 0:
        name = what.name or "level"
        raise ConfigError(
            f"The {name} has no time, as bonus rooms have: give its header a timer of 200, 300 or 400."
        )
    return Play(*parse_stage(what.stage), level_memory(image, what))


def level_names(levels: Sequence[LevelData], taken: Sequence[str] = ()) -> list[str]:
    """A name for each level that no other has."""
    names = list(taken)
    for i, level in enumerate(levels):
        name = level.name or f"level {i}"
        while name in names:
            name += f" ({i})"
        names.append(name)
    return names[len(taken) :]
