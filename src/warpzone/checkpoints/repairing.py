"""Repairs sidecars with `global_step` 0 after many updates, as the seed system wrote them when overlapping.

The step is computed as update x environments x rollout length. The file as it was stays beside it as `.bak`,
and `reconstructed_step_source` records how the number was computed; a sidecar that has it is not changed again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from warpzone.checkpoints.format import read_tree
from warpzone.checkpoints.saving import sidecar_data
from warpzone.checkpoints.sidecar import STEP_SOURCE, Json, find_setting, parse_json, step_counts
from warpzone.errors import CheckpointError
from warpzone.watch.durable import FILES, Files, write_durably

SEED_ROLLOUT_STEPS = 64
"""Rollout length of the seed system's runs, which did not record it."""


@dataclass(frozen=True)
class Repair:
    """A sidecar to repair; `global_step` is None if it can't be computed, and `problem` says why."""

    path: Path
    global_step: int | None
    document: Json
    problem: str = ""

    def __str__(self) -> str:
        if self.global_step is None:
            return f"[migrate] {self.path}: global_step is 0 and cannot be computed ({self.problem})"
        return f"[migrate] {self.path}: global_step 0 -> {self.global_step}"


def find_repairs(root: Path, *, assume_rollout_steps: int = SEED_ROLLOUT_STEPS) -> list[Repair]:
    """The sidecars at or below `root` that need repair, in the order of their paths. Changes nothing."""
    found = (_repair_of(path, assume_rollout_steps) for path in _sidecars(root))
    return [repair for repair in found if repair is not None]


def apply_repair(repair: Repair, files: Files = FILES) -> None:
    """Write the repaired sidecar, after keeping the original as `<name>.json.bak` (an older .bak stays)."""
    if repair.global_step is None:
        raise CheckpointError(f"{repair.path} cannot be repaired: {repair.problem}")
    try:
        backup = repair.path.with_name(repair.path.name + ".bak")
        if not backup.exists():
            write_durably(backup, repair.path.read_bytes(), files)
        data = json.dumps(repair.document, indent=2, ensure_ascii=False) + "\n"
        write_durably(repair.path, data.encode(), files)
    except OSError as error:
        raise CheckpointError(f"could not repair {repair.path} ({error.strerror or error})") from error


def _repair_of(path: Path, assume_rollout_steps: int) -> Repair | None:
    try:
        document = parse_json(sidecar_data(path), str(path))
    except CheckpointError:
        return None
    counts = step_counts(document)
    extra = document.get("extra")
    if STEP_SOURCE in document or (isinstance(extra, dict) and STEP_SOURCE in extra):
        return None
    if counts.get("global_step") != 0 or "global_update" not in counts:
        return None
    update, from_file = counts["global_update"], False
    if update == 0:
        update, from_file = _update_inside(path.with_suffix(".pt")), True
    if not isinstance(update, int) or update <= 0:
        # Nothing was learned yet, so zero steps is correct.
        return None
    num_envs = find_setting(document, "num_envs")
    if num_envs is None:
        return Repair(path, None, document, "the sidecar has no num_envs")
    recorded = find_setting(document, "rollout_steps")
    rollout_steps = recorded or assume_rollout_steps
    global_step = update * num_envs * rollout_steps
    repaired = json.loads(json.dumps(document))
    step_counts(repaired).update(global_step=global_step, global_update=update)
    repaired[STEP_SOURCE] = {
        "method": "rebuild",
        "formula": "global_update * num_envs * rollout_steps",
        "global_update": update,
        "global_update_from": "checkpoint" if from_file else "sidecar",
        "num_envs": num_envs,
        "rollout_steps": rollout_steps,
        "rollout_steps_from": "sidecar" if recorded else "assumption",
    }
    return Repair(path, global_step, repaired)


def _sidecars(root: Path) -> list[Path]:
    candidates = [root] if root.is_file() else sorted(root.rglob("*.json"))
    return [path for path in candidates if path.is_file() and not path.is_symlink()]


def _update_inside(path: Path) -> int:
    """The update count that the seed system also kept inside the checkpoint; 0 where there is none."""
    try:
        with path.open("rb") as file:
            state = read_tree(file, str(path))
    except (OSError, CheckpointError):
        return 0
    update = state.get("global_update") if isinstance(state, dict) else None
    return update if isinstance(update, int) else 0
