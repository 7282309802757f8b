"""Commands of `warpzone` as child processes that never outlive their parent."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

GRACE_S = 60.0
"""How long a child may take to save after SIGTERM before it is killed."""
START_S = 180.0
"""How long a training may take to its first record; until then it is not stopped, as it would have learned nothing."""
LOG_BYTES = 4000
PATIENT = {"OMP_WAIT_POLICY": "passive"}
"""Threads of torch that wait for each other by spinning take the cores from emulation and from other runs
(docs/research/2026-11-17-noise-from-the-start.md)."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Process(Protocol):
    """A command that runs somewhere."""

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None:
        """The exit code; None while it runs."""

    def send_signal(self, number: signal.Signals, /) -> None:
        """Send a signal to it and all that it started."""


Spawn = Callable[[Sequence[str], Path], Process]
"""Starts a command whose output is appended to a file."""


@dataclass
class Child:
    """A running command."""

    name: str
    argv: list[str]
    process: Process
    log: Path
    seconds: float
    """How long it may run."""
    record: Path | None = None
    """A file that grows once a training has learned something."""
    record_bytes: int = 0
    """Its size when the child was started."""
    began: float = field(default_factory=time.monotonic)
    began_unix_s: float = field(default_factory=time.time)
    stopped_at: float | None = None

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.began

    def has_learned(self) -> bool:
        """Whether it did anything yet that a stop would save."""
        if self.record is None or self.age_s > START_S:
            return True
        return _size(self.record) > self.record_bytes

    def stop(self) -> None:
        """Ask it to save and end; insist later."""
        if self.stopped_at is None:
            self.stopped_at = time.monotonic()
            self._signal(signal.SIGTERM)
        elif time.monotonic() - self.stopped_at > GRACE_S:
            self._signal(signal.SIGKILL)

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace").strip()

    def _signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


class Crew:
    """The children that run now."""

    def __init__(self, logs: Path, spawn: Spawn | None = None) -> None:
        self._logs = logs
        self._spawn = spawn or GroupProcess
        self.children: dict[str, Child] = {}

    def __len__(self) -> int:
        return len(self.children)

    def start(self, name: str, words: Sequence[str], seconds: float, record: Path | None = None) -> Child:
        """Start `warpzone WORDS...` in a process group of its own, so that Ctrl+C reaches only the parent."""
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        argv, size = ["warpzone", *words], _size(record) if record else 0
        with log.open("ab") as out:
            out.write(f"\n$ {shlex.join(argv)}\n".encode())
        process = self._spawn([sys.executable, "-m", "warpzone.cli.main", *words], log)
        self.children[name] = Child(name, argv, process, log, seconds, record, size)
        return self.children[name]

    def ended(self) -> list[Child]:
        """Those that have ended since last asked; ones whose time is over are told to."""
        for child in self.children.values():
            if child.stopped_at is not None or (child.age_s > child.seconds and child.has_learned()):
                child.stop()
        over = [child for child in self.children.values() if child.process.poll() is not None]
        for child in over:
            del self.children[child.name]
        return over

    def stop_all(self) -> list[Child]:
        """End all of them; returns when they are gone."""
        for child in self.children.values():
            child.stop()
        over: list[Child] = []
        while self.children:
            over += self.ended()
            time.sleep(0.05)
        return over


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def die_with_parent(with_signal: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the child gets this signal when the process that starts it dies."""
    parent = os.getpid()

    def arrange() -> None:
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, with_signal)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)

    return arrange


class GroupProcess:
    """A command in a process group of its own, with its output at the end of a file."""

    def __init__(self, argv: Sequence[str], log: Path, variables: Mapping[str, str] | None = None) -> None:
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=die_with_parent(signal.SIGTERM),
                env={**PATIENT, **os.environ, **(variables or {})},
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.poll()

    def send_signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
