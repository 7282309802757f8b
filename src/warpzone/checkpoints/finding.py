"""Which checkpoint a run resumes from.

The order: the path given by `--resume`; a numbered checkpoint of this run; its `latest`; a search below the
runs folder for a checkpoint of a matching configuration. Within the run the most recent save comes first, and
of one save the numbered file, so that no progress is lost. A file that does not verify is never chosen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.checkpoints.saving import (
    checkpoint_path,
    described_metas,
    numbered_checkpoints,
    read_meta,
    sound_meta,
)
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError, nearest

SEARCH_LIMIT_FILES = 10_000


@dataclass(frozen=True)
class ResumeSource:
    """A verified checkpoint and how it was found: `--resume`, `numbered`, `latest` or `search`."""

    path: Path
    meta: CheckpointMeta
    found_by: str

    def __str__(self) -> str:
        return (
            f"[train] resuming from {self.path} ({self.found_by}; "
            f"update {self.meta.global_update}, step {self.meta.global_step})"
        )


def find_resume(
    run_folder: Path,
    *,
    resume: str | None = None,
    runs_folder: Path | None = None,
    matching: Mapping[str, Any] | None = None,
    limit_files: int = SEARCH_LIMIT_FILES,
) -> ResumeSource | None:
    """The checkpoint to resume from, or None for a fresh start.

    `resume` is what the user asked for: `latest`, a file, a run's folder or a run's name; it must exist
    and be sound. `matching` is the part of the configuration that a checkpoint of another run must share;
    without it or without `runs_folder` other runs are not searched.
    """
    if resume and resume != "latest":
        return _explicit(resume, runs_folder)
    own = _newest_of_run(run_folder, latest_first=resume == "latest")
    if own is not None:
        return own
    found = None
    if runs_folder is not None and matching is not None:
        found = find_matching(runs_folder, matching, limit_files=limit_files)
    if found is None and resume == "latest":
        raise CheckpointError(
            f"{run_folder} has no intact checkpoint; leave --resume out to start from the beginning"
        )
    return found


def find_place(name: str, runs_folder: Path) -> Path:
    """A file, or the folder of a run given by its path or name; CheckpointError says which places were searched."""
    places = (Path(name), runs_folder / name)
    for place in (*places, *map(checkpoint_path, places)):
        if place.exists() or place.is_symlink():
            return place
    raise not_found(name, *places)


def not_found(name: str, *places: Path) -> CheckpointError:
    """The error for a missing checkpoint or run: the places searched, and the nearest name there."""
    known = [path.name for place in places if place.parent.is_dir() for path in place.parent.iterdir()]
    near = nearest(Path(name).name, sorted(known))
    hint = f"did you mean {near}?" if near else "see `warpzone checkpoints list`."
    looked = " and ".join(dict.fromkeys(map(str, places)))
    return CheckpointError(f"There is no checkpoint or run {name!r} (looked for {looked}): {hint}")


def best_checkpoint(run_folder: Path) -> Path:
    """The checkpoint to evaluate a run by: `best`, else the newest sound one."""
    best = run_folder / "checkpoints" / "best.pt"
    if sound_meta(best) is not None:
        return best
    newest = _newest_of_run(run_folder)
    if newest is None:
        raise CheckpointError(f"{run_folder} has no intact checkpoint; train first or choose another run")
    return newest.path


def find_matching(
    runs_folder: Path, matching: Mapping[str, Any], *, limit_files: int = SEARCH_LIMIT_FILES
) -> ResumeSource | None:
    """The furthest sound checkpoint below `runs_folder` whose configuration has all that `matching` has."""
    candidates = [
        (meta.global_step, meta.save_index, path, meta)
        for path in _files_below(runs_folder, limit_files)
        if path.suffix == ".pt" and not path.name.startswith(".")
        for meta in described_metas(path)
        if contains(meta.config, matching)
    ]
    chosen = _first_sound(sorted(candidates, key=lambda c: c[:3], reverse=True))
    return chosen and ResumeSource(*chosen, "search")


def contains(config: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether every key of `part`, at every depth, has the same value in `config`."""
    for key, wanted in part.items():
        if key not in config:
            return False
        value = config[key]
        if isinstance(wanted, Mapping):
            if not isinstance(value, Mapping) or not contains(value, wanted):
                return False
        elif (list(wanted) if isinstance(wanted, tuple) else wanted) != value:
            return False
    return True


def _explicit(resume: str, runs_folder: Path | None) -> ResumeSource:
    place = find_place(resume, runs_folder or Path())
    if not place.is_dir():
        return ResumeSource(checkpoint_path(place), read_meta(checkpoint_path(place)), "--resume")
    newest = _newest_of_run(place)
    if newest is None:
        raise CheckpointError(f"{place} has no intact checkpoint; give another path to --resume")
    return ResumeSource(newest.path, newest.meta, "--resume")


def _newest_of_run(run_folder: Path, *, latest_first: bool = False) -> ResumeSource | None:
    folder = run_folder / "checkpoints" if (run_folder / "checkpoints").is_dir() else run_folder
    latest = folder / "latest.pt"
    candidates = [
        (latest_first and path == latest, meta.save_index, meta.global_update, path != latest, path, meta)
        for path in [*numbered_checkpoints(folder), latest]
        for meta in described_metas(path)
    ]
    chosen = _first_sound(sorted(candidates, key=lambda c: c[:5], reverse=True))
    return chosen and ResumeSource(*chosen, "latest" if chosen[0] == latest else "numbered")


def _first_sound(candidates: Sequence[tuple[Any, ...]]) -> tuple[Path, CheckpointMeta] | None:
    """The first (..., path, meta) whose file is sound and is the one that `meta` describes."""
    sound: dict[Path, CheckpointMeta | None] = {}
    for *_, path, meta in candidates:
        if path not in sound:
            sound[path] = sound_meta(path)
        # After an interrupted save, the newest description is of a file that was never written.
        if sound[path] == meta:
            return path, meta
    return None


def _files_below(folder: Path, limit: int) -> Iterator[Path]:
    """At most `limit` files, nearest first and in the order of their names; links are not followed."""
    folders, seen = [folder], 0
    while folders:
        here = folders.pop(0)
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                if seen >= limit:
                    return
                seen += 1
                yield Path(entry.path)
