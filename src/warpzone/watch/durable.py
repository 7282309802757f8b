"""Files that are either complete or absent: written under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_serial = itertools.count()
_TEMPORARY_NAME = re.compile(r"^\..+\.(\d{1,9})\.\d+\.tmp$")


class Files:
    """The system calls of a durable write, in one place so that a test can make each of them fail."""

    def create(self, path: Path) -> int:
        """Open a new file for writing; an existing name, even a symlink, is an error."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o644)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write some of `data` and return how much; the caller writes the rest."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        """Make a rename survive a power failure; Windows has no such call and does not need it."""
        if os.name != "posix":
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        os.unlink(path)


FILES = Files()


class PendingFile:
    """A file under a temporary name in its final folder; it appears under `target` only on `commit`."""

    def __init__(self, target: Path, files: Files = FILES) -> None:
        self.target = target
        self.temporary = target.with_name(f".{target.name}.{os.getpid()}.{next(_serial)}.tmp")
        self.size = 0
        self._digest = hashlib.sha256()
        self._files = files
        self._descriptor: int | None = files.create(self.temporary)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes | bytearray | memoryview) -> int:
        if self._descriptor is None:
            raise ValueError(f"{self.temporary} is closed")
        rest = memoryview(data).cast("B")
        length = len(rest)
        self._digest.update(rest)
        while rest:
            rest = rest[self._files.write(self._descriptor, rest) :]
        self.size += length
        return length

    def flush(self) -> None:
        """Nothing is buffered; writers of file formats call it."""

    def finish(self) -> None:
        """Flush the bytes to disk and close; the file still has its temporary name."""
        if self._descriptor is not None:
            self._files.sync(self._descriptor)
            self._close()

    def commit(self) -> None:
        self.finish()
        self._files.replace(self.temporary, self.target)
        self._files.sync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove what was written. After `commit` there is nothing left to remove."""
        with suppress(OSError):
            self._close()
        with suppress(OSError):
            self._files.remove(self.temporary)

    def _close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            self._files.close(descriptor)


@contextmanager
def pending_file(target: Path, files: Files = FILES) -> Iterator[PendingFile]:
    """A `PendingFile` that is discarded unless the block commits it."""
    pending = PendingFile(target, files)
    try:
        yield pending
    finally:
        pending.discard()


def write_durably(path: Path, data: bytes, files: Files = FILES) -> None:
    """Replace `path` with `data`: a reader sees the old bytes or the new ones, even after a power failure."""
    with pending_file(path, files) as pending:
        pending.write(data)
        pending.commit()


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files whose writer was killed. Those of living processes stay."""
    for entry in folder.iterdir():
        found = _TEMPORARY_NAME.match(entry.name)
        if found and not psutil.pid_exists(int(found.group(1))):
            with suppress(OSError):
                entry.unlink()
