"""One process at a time in a run's folder."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from warpzone.errors import ConfigError

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "train.lock"
_HELD: set[Path] = set()
"""Folders that this process trains in: it could take the lock twice, and either closing would let go of it."""


def refuse_if_trained(folder: Path) -> None:
    """Raises ConfigError if another process trains this run, before anything of it is read or written.

    Whoever goes on takes the lock when the folder is made; one that can't be written is refused there.
    """
    if (folder / LOCK_FILE).exists():
        with suppress(OSError):
            RunLock(folder).close()


class RunLock:
    """Held from opening to closing; a process that dies lets go of it.

    A record lock, which forked workers do not inherit: one that outlives its trainer does not block the next.
    """

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError if this run is being trained."""
        self._folder = folder.resolve()
        if self._folder in _HELD:
            raise ConfigError(f"The run {folder} is being trained by this process: choose another run_name.")
        self._file = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._lock(folder)
        except BaseException:
            os.close(self._file)
            raise
        _HELD.add(self._folder)

    def close(self) -> None:
        os.close(self._file)
        _HELD.discard(self._folder)

    def _lock(self, folder: Path) -> None:
        if fcntl is None:
            return
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # a file system without locks
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip() or "unknown"
            raise ConfigError(
                f"The run {folder} is being trained by another process (number {holder}): "
                "stop that one, or choose another --run-name."
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
