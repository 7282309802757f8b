"""The custom encoder and reward function of a run: named, recorded, and the same when the run resumes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from warpzone import custom_code
from warpzone.checkpoints.finding import ResumeSource
from warpzone.errors import CheckpointError
from warpzone.run.config import TrainConfig

PARTS = (("model", "encoder"), ("reward", "reward_function"))
"""Where custom code stands in the settings: group and field."""


def references(config: TrainConfig) -> dict[tuple[str, str], str]:
    """The custom code in the settings, by group and field."""
    found = {part: str(getattr(getattr(config, part[0]), part[1])) for part in PARTS}
    return {part: text for part, text in found.items() if custom_code.is_reference(text)}


def with_named_code(config: TrainConfig, folder: Path) -> TrainConfig:
    """The settings with the digest of every file. What the run's folder names runs only with --trust-code."""
    for (group, field), text in references(config).items():
        if config.run.trust_code and custom_code.parse(text).sha256:
            custom_code.trust(text, folder)
        reference = custom_code.named(text)
        custom_code.load(reference)
        config = config.changed(group, **{field: reference})
    return config


def check_unchanged(config: TrainConfig, source: ResumeSource, say: Callable[[str], None]) -> None:
    """Refuse to resume with other code than the checkpoint was trained with, unless told to."""
    for (group, field), text in references(config).items():
        recorded = str(source.meta.config.get(group, {}).get(field, ""))
        if not custom_code.is_reference(recorded):
            continue
        now, then = custom_code.parse(text), custom_code.parse(recorded)
        if (now.name, now.sha256) == (then.name, then.sha256):
            continue
        flag = "--" + field.replace("_", "-")
        changed = (
            f"{flag} {now.file}:{now.name} (sha256 {now.sha256[:12]}) is not the code that {source.path} was trained "
            f"with, {then.name} in {then.copy}"
        )
        if not config.run.accept_changed_code:
            raise CheckpointError(f"{changed}: restore the file, use --fresh, or add --accept-changed-code.")
        say(f"[train][warn] {changed}: accepted")


def keep_code(config: TrainConfig, folder: Path) -> None:
    """Copy the files into the run's folder, where `eval`, `record` and `watch` find them."""
    for text in references(config).values():
        custom_code.keep(text, folder)


def share_code(config: dict[str, Any], run: Path, folder: Path) -> dict[str, Any]:
    """Copy the code of a saved configuration from its run to another folder; it is then named without its path."""
    shared = {**config}
    for group, field in PARTS:
        text = str(config.get(group, {}).get(field, ""))
        if custom_code.is_reference(text):
            reference = custom_code.parse(text)
            copy = run / custom_code.FOLDER / reference.copy
            (folder / custom_code.FOLDER).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy, folder / custom_code.FOLDER / reference.copy)
            shared[group] = {**config[group], field: str(replace(reference, file=Path(reference.file.name)))}
    return shared
