"""The settings that a run was last trained with, for the session that resumes it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from warpzone.checkpoints.settings import from_json
from warpzone.errors import ConfigError
from warpzone.run.config import ScriptConfig, TrainConfig

CONFIG_FILE = "config.json"
STAGE_CHOICES = ("world", "stage", "stage_span", "stages", "levels")
_ONCE: Any = {
    "fresh": False,
    "resume": "",
    "dry_run": False,
    "trust_code": False,
    "accept_changed_code": False,
}
"""What is said for one session only."""


def saved_settings(folder: Path) -> TrainConfig | None:
    """The settings that a run was last trained with; None where there is no run to go on with."""
    try:
        saved = json.loads((folder / CONFIG_FILE).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(saved, dict) or not any((folder / "checkpoints").glob("*.pt")):
        return None
    try:
        rooms = {
            room.name: from_json(type(getattr(TrainConfig(), room.name)), saved.get(room.name, {}))
            for room in dataclasses.fields(TrainConfig)
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{folder / CONFIG_FILE} does not hold settings of a run ({error}): repair it or use --fresh."
        ) from error
    settings = TrainConfig(**{**rooms, "script": ScriptConfig()})
    return settings.changed("run", **_ONCE).changed("watch", profile=False).resolved()


def settings_to_resume(folder: Path, given: Collection[str]) -> TrainConfig | None:
    """The settings of a run, wherever its folder has been moved to; of `given`, a way to choose stages replaces the one
    before, whichever of them it was."""
    saved = saved_settings(folder)
    if saved is None:
        return None
    choice: dict[str, Any] = {}
    if any(name in given for name in ("world", "stage", "stage_span")):
        choice = {"stages": "", "random_stage": False}
    if "stages" in given:
        choice = {"random_stage": False}
    if choice and "levels" not in given:
        choice["levels"] = ""
    moved = saved.changed("run", run_name=folder.name, runs_dir=str(folder.parent))
    return moved.changed("stage", **choice)
