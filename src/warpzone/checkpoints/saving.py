"""Saving and loading checkpoints: `<name>.pt` with the state and `<name>.json` with its metadata and digest.

A save writes the new file under a temporary name, then a sidecar that describes both the new file and the one
it replaces, then renames the file, then drops the old description. A crash between any two of these leaves a
matching pair, so saving never loses the previous checkpoint.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from warpzone.checkpoints.sidecar import (
    MAX_SIDECAR_BYTES,
    CheckpointMeta,
    Description,
    parse_sidecar,
    sidecar_bytes,
)
from warpzone.checkpoints.uninterrupted import uninterrupted
from warpzone.errors import CheckpointError
from warpzone.watch.durable import FILES, Files, pending_file, remove_abandoned, write_durably

if TYPE_CHECKING:
    from warpzone.checkpoints.format import Tree

_STEP_NAME = re.compile(r"^step_(\d+)$")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
_READ_ATTEMPTS = 10


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and verified."""

    path: Path
    meta: CheckpointMeta
    state: Tree

    def of_training(self) -> dict[str, Any]:
        """Its state, if it is that of a training run."""
        if not isinstance(self.state, dict) or "learner" not in self.state:
            raise CheckpointError(f"{self.path} holds no learner: it is not from `warpzone train`.")
        return self.state


def save_checkpoint(
    folder: Path, name: str, state: Tree, meta: CheckpointMeta, *, files: Files = FILES
) -> Path:
    """Write `folder/name.pt` and its sidecar, replacing what was there, and return the path of the file.

    Raises CheckpointError if the disk or the state does not allow it; the previous checkpoint is then untouched.
    """
    from warpzone.checkpoints.format import write_tree  # torch takes seconds to load

    if not _NAME.match(name):
        raise CheckpointError(f"{name!r} is not a checkpoint name; use letters, digits, '_', '-' and '.'")
    path = folder / f"{name}.pt"
    sidecar = folder / f"{name}.json"
    # Both descriptions of this save must be the same.
    meta = replace(meta, created_unix_s=meta.created_unix_s or time.time())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        with pending_file(path, files) as pending:
            write_tree(state, pending)
            pending.finish()
            new = Description(meta, pending.size, pending.sha256)
            replaced = _described_file(path)
            with uninterrupted():
                write_durably(sidecar, sidecar_bytes(new, replaced), files)
                pending.commit()
                if replaced:
                    write_durably(sidecar, sidecar_bytes(new), files)
    except OSError as error:
        raise CheckpointError(
            f"could not save {path} ({error.strerror or error}); the checkpoints already there are untouched"
        ) from error
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"could not save {path}: its metadata is not JSON ({error})") from error
    return path


def load_checkpoint(path: Path | str) -> Checkpoint:
    """Read a checkpoint, verified against its sidecar. Raises CheckpointError; no code in the file is executed."""
    from warpzone.checkpoints.format import read_tree  # torch takes seconds to load

    path = checkpoint_path(path)
    with _verified(path) as (file, described):
        return Checkpoint(path, described.meta, read_tree(file, str(path)))


def read_meta(path: Path | str, *, verify: bool = True) -> CheckpointMeta:
    """What the sidecar says; with `verify` the file's size and digest are checked as well."""
    path = checkpoint_path(path)
    if verify:
        with _verified(path) as (file, described):
            if described.sha256 is None:
                # Layouts without a digest: only reading the file shows that it is complete.
                from warpzone.checkpoints.format import read_tree

                read_tree(file, str(path))
            return described.meta
    return _read_sidecar(path)[0].meta


def described_metas(path: Path) -> tuple[CheckpointMeta, ...]:
    """All that the sidecar describes, unverified: after an interrupted save, the new file and the old one."""
    try:
        return tuple(described.meta for described in _read_sidecar(path))
    except CheckpointError:
        return ()


def sound_meta(path: Path) -> CheckpointMeta | None:
    """What the sidecar says, if the file is there, is no link out of its folder and fits; else None."""
    try:
        return read_meta(path)
    except CheckpointError:
        return None


def checkpoint_path(path: Path | str) -> Path:
    """The `.pt` file that a user means by it, its sidecar or its name without an ending."""
    path = Path(path)
    if path.suffix == ".pt":
        return path
    return path.with_suffix(".pt") if path.suffix == ".json" else Path(f"{path}.pt")


def step_name(global_step: int) -> str:
    return f"step_{global_step:012d}"


def step_number(path: Path) -> int | None:
    """The environment step in the name of a numbered checkpoint, else None."""
    found = _STEP_NAME.match(path.stem)
    return int(found.group(1)) if found else None


def numbered_checkpoints(folder: Path) -> list[Path]:
    """`step_*.pt` in the order of their numbers."""
    found = [(number, path) for path in folder.glob("step_*.pt") if (number := step_number(path)) is not None]
    return [path for _, path in sorted(found)]


def prune(folder: Path, keep: int, *, spare: Path | None = None, dry_run: bool = False) -> list[Path]:
    """Delete all but the `keep` most recently saved numbered checkpoints (0 = none) and return the deleted."""
    if keep <= 0:
        return []
    doomed = sorted(numbered_checkpoints(folder), key=_age)[:-keep]
    doomed = [path for path in doomed if path != spare]
    for path in [] if dry_run else doomed:
        # The file goes first: a sidecar alone is never taken for a checkpoint.
        with suppress(FileNotFoundError):
            path.unlink()
        with suppress(FileNotFoundError):
            path.with_suffix(".json").unlink()
    return doomed


def _age(path: Path) -> tuple[int, int]:
    try:
        meta = read_meta(path, verify=False)
    except CheckpointError:
        return (-1, step_number(path) or 0)
    return (meta.save_index, meta.global_step)


@contextmanager
def _verified(path: Path) -> Iterator[tuple[IO[bytes], Description]]:
    """A checkpoint file, open, with the one of its sidecar's descriptions that its bytes match."""
    seen: tuple[object, ...] = ()
    for _ in range(_READ_ATTEMPTS):
        descriptions = _read_sidecar(path)
        with _open_inside_folder(path, f"checkpoint {path}") as file:
            described = _match(file, descriptions)
            if described is not None:
                yield file, described
                return
            # A pair that is being replaced matches at the next attempt; one that does not change never will.
            found = os.fstat(file.fileno())
        if seen == (descriptions, found.st_ino, found.st_mtime_ns):
            break
        seen = (descriptions, found.st_ino, found.st_mtime_ns)
    raise CheckpointError(
        f"{path} is damaged: it does not match the digest in its sidecar; choose another checkpoint"
    )


def _match(file: IO[bytes], descriptions: tuple[Description, ...]) -> Description | None:
    size = os.fstat(file.fileno()).st_size
    possible = [d for d in descriptions if d.size in (None, size)]
    if not possible:
        return None
    digest = _sha256(file) if any(d.sha256 for d in possible) else None
    return next((d for d in possible if d.sha256 in (None, digest)), None)


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _read_sidecar(path: Path) -> tuple[Description, ...]:
    sidecar = path.with_suffix(".json")
    return parse_sidecar(sidecar_data(sidecar), str(sidecar))


def sidecar_data(sidecar: Path) -> bytes:
    """The bytes of a sidecar, unless there are too many for one."""
    with _open_inside_folder(sidecar, f"sidecar {sidecar}") as file:
        data = file.read(MAX_SIDECAR_BYTES + 1)
    if len(data) > MAX_SIDECAR_BYTES:
        raise CheckpointError(f"{sidecar} is too large to be a sidecar; choose another checkpoint")
    return data


def _open_inside_folder(path: Path, what: str) -> IO[bytes]:
    """Open a regular file; a link is followed only to a neighbour in the same folder."""
    try:
        if path.is_symlink() and path.resolve().parent != path.parent.resolve():
            raise CheckpointError(f"{what} is a link out of its folder; copy the file instead")
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointError(f"{what} is not a regular file; choose another checkpoint")
        return path.open("rb")
    except FileNotFoundError as error:
        raise CheckpointError(f"{what} does not exist; see `warpzone checkpoints list`") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{what} cannot be read ({reason}); choose another checkpoint") from error


def _described_file(path: Path) -> tuple[Description, ...]:
    """The description of the file now at `path`, kept until it is replaced; () if there is none."""
    try:
        descriptions = _read_sidecar(path)
    except CheckpointError:
        return ()
    if len(descriptions) == 1 and path.exists():
        return descriptions
    # An earlier save was interrupted between its renames: only the digest tells which description holds.
    try:
        with _open_inside_folder(path, str(path)) as file:
            described = _match(file, descriptions)
    except CheckpointError:
        return ()
    return (described,) if described else ()
