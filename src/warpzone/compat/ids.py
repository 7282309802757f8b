"""The environments' ids and what they stand for."""

from __future__ import annotations

from typing import Any, NamedTuple

ROM_MODES = ("vanilla", "downsample", "pixel", "rectangle")
"""By the version at an id's end."""

MAX_EPISODE_STEPS = 9999999


class Entry(NamedTuple):
    """An id's class, `SuperMarioBrosEnv` or `SuperMarioBrosRandomStagesEnv`, and its arguments."""

    random: bool
    arguments: dict[str, Any]


def _all_ids() -> dict[str, Entry]:
    ids = {}
    for version, mode in enumerate(ROM_MODES):
        ids[f"SuperMarioBros-v{version}"] = Entry(False, {"rom_mode": mode})
        ids[f"SuperMarioBrosRandomStages-v{version}"] = Entry(True, {"rom_mode": mode})
        for world in range(1, 9):
            for stage in range(1, 5):
                arguments = {"rom_mode": mode, "target": (world, stage)}
                ids[f"SuperMarioBros-{world}-{stage}-v{version}"] = Entry(False, arguments)
    for version, mode in enumerate(ROM_MODES[:2]):
        lost = {"lost_levels": True, "rom_mode": mode}
        ids[f"SuperMarioBros2-v{version}"] = Entry(False, lost)
        # Version 7 can play these stages but has no ids for them; the worlds behind them it can't.
        for world in range(1, 5):
            for stage in range(1, 5):
                ids[f"SuperMarioBros2-{world}-{stage}-v{version}"] = Entry(
                    False, {**lost, "target": (world, stage)}
                )
    return ids


IDS = _all_ids()
