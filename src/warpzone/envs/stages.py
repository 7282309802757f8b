"""Stage names: '1-1' to '8-4', 'game' for the whole game, and how lists of them are written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpzone.errors import ConfigError

WORLDS, STAGES_PER_WORLD = 8, 4
LOST_LEVELS_WORLDS = 4
"""Worlds of the Lost Levels in the ROM of gym-super-mario-bros: in its table of areas, $9CBC, the rest are zeros."""

GAME = "game"
ALL_STAGES = tuple(f"{w}-{s}" for w in range(1, WORLDS + 1) for s in range(1, STAGES_PER_WORLD + 1))


def parse_stage(name: str, *, lost_levels: bool = False) -> tuple[int, int]:
    """(world, stage) of a name; the whole game is (0, 0)."""
    if name == GAME:
        return 0, 0
    match = re.fullmatch(r"(\d+)-(\d+)", str(name).strip())
    worlds = LOST_LEVELS_WORLDS if lost_levels else WORLDS
    if match:
        world, stage = int(match[1]), int(match[2])
        if 1 <= world <= worlds and 1 <= stage <= STAGES_PER_WORLD:
            return world, stage
    raise ConfigError(
        f"There is no stage {name!r}: stages are '1-1' to '{worlds}-{STAGES_PER_WORLD}', or 'game'."
    )


def parse_stages(names: Iterable[str] | str, *, lost_levels: bool = False) -> list[str]:
    """Expand 'all', '3' (a world), '1-1,2-3' or a sequence of names into stage names."""
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",") if part.strip()]
    if not isinstance(names, Iterable):
        raise ConfigError(f"Stages are a list of names such as '1-1', not {names!r}.")
    worlds = LOST_LEVELS_WORLDS if lost_levels else WORLDS
    expanded: list[str] = []
    for name in names:
        if name == "all":
            expanded += [n for n in ALL_STAGES if int(n[0]) <= worlds]
        elif isinstance(name, str) and name.isdecimal() and 1 <= int(name) <= worlds:
            expanded += [f"{int(name)}-{s}" for s in range(1, STAGES_PER_WORLD + 1)]
        else:
            world, stage = parse_stage(name, lost_levels=lost_levels)
            expanded.append(f"{world}-{stage}" if world else GAME)
    if not expanded:
        raise ConfigError("Name at least one stage, such as '1-1' or 'all'.")
    return list(dict.fromkeys(expanded))


def stage_span(first: str, count: int) -> list[str]:
    """`count` stages from `first` on, in the order of the game."""
    world, stage = parse_stage(first)
    if not world:
        raise ConfigError("A span of stages begins at a stage, not at the whole game.")
    at = (world - 1) * STAGES_PER_WORLD + stage - 1
    if not 1 <= count <= len(ALL_STAGES) - at:
        raise ConfigError(
            f"--stage-span {count} from {first} does not fit: {len(ALL_STAGES) - at} stages are left."
        )
    return list(ALL_STAGES[at : at + count])
