"""A file layer that fails at a chosen call, as a full or dying disk or a killed process would."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from warpzone.watch.durable import Files


class Crash(BaseException):
    """Stands for SIGKILL: nothing after it runs, not even clean-up that touches the disk."""


class FaultyFiles(Files):
    """Makes the n-th call (from 0) fail: with `fault` ENOSPC, EIO, `short` (half a write) or `crash`."""

    def __init__(self, fail_at: int, fault: str) -> None:
        self.fail_at = fail_at
        self.fault = fault
        self.calls = 0
        self.crashed = False

    def _step(self) -> bool:
        if self.crashed:
            raise Crash
        self.calls += 1
        if self.calls - 1 != self.fail_at:
            return False
        if self.fault == "crash":
            self.crashed = True
            raise Crash
        if self.fault != "short":
            number = getattr(errno, self.fault)
            raise OSError(number, os.strerror(number))
        return True

    def create(self, path: Path) -> int:
        self._step()
        return super().create(path)

    def write(self, descriptor: int, data: memoryview) -> int:
        return super().write(descriptor, data[: max(1, len(data) // 2)] if self._step() else data)

    def sync(self, descriptor: int) -> None:
        self._step()
        super().sync(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        self._step()
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        self._step()
        super().sync_folder(folder)

    def remove(self, path: Path) -> None:
        if self.crashed:
            raise Crash
        super().remove(path)
