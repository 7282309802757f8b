"""Signs of life: what the run is doing, written at an interval, and a watchdog for when it stalls."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import psutil

from warpzone.watch.jsonl import JsonLines
from warpzone.watch.stacks import format_stacks

_BACKSTOP_FILE = "stall_interpreter.log"

StallCallback = Callable[[int], None]
"""Called with 1 when a stall is detected and with 2, 3, ... when it persists for twice as long."""


class _Beat(NamedTuple):
    at_s: float
    phase: str
    phase_began_s: float
    progress: float | None
    counts: dict[str, Any]


class Heartbeat:
    """Writes `heartbeat.jsonl` from its own thread and dumps all stacks when there is no beat for `timeout_s`.

    `beat` is a few assignments, cheap enough for every environment step. Dumps of one stall come after `timeout_s`,
    twice and four times that and so on, so that a long stall leaves only a few files.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout_s: float = 300.0,
        interval_s: float = 10.0,
        diagnostics: Path | None = None,
        on_stall: StallCallback | None = None,
    ) -> None:
        self._lines = JsonLines(path)
        self._timeout_s = timeout_s
        self._interval_s = min(interval_s, timeout_s / 2) if timeout_s > 0 else interval_s
        self._diagnostics = diagnostics or path.parent / "diagnostics"
        self._on_stall = on_stall
        self._process = psutil.Process()
        now = time.monotonic()
        self._last = _Beat(now, "start", now, None, {})
        self._advanced: tuple[float, float | None] = (now, None)
        self._alarms = 0
        self._closing = threading.Event()
        self._backstop: IO[str] | None = None
        self._arm_backstop()
        self._thread = threading.Thread(target=self._watch, name="heartbeat", daemon=True)
        self._thread.start()

    def beat(self, phase: str | None = None, *, progress: float | None = None, **counts: Any) -> None:
        """Report that the run is alive: in `phase` (default: the same as before), `progress` from 0 to 1 inside it."""
        now, last = time.monotonic(), self._last
        changed = phase is not None and phase != last.phase
        self._last = _Beat(
            now,
            phase if phase is not None else last.phase,
            now if changed else last.phase_began_s,
            progress,
            {**last.counts, **counts} if counts else last.counts,
        )

    def advance(self, progress: float) -> None:
        """Report the rollout's progress, from 0 to 1. Any thread may call it, as the phase does not change."""
        self._advanced = (time.monotonic(), progress)

    def close(self, phase: str = "closed") -> None:
        """Write a last record and stop watching."""
        if self._closing.is_set():
            return
        self.beat(phase)
        self._closing.set()
        self._thread.join()
        if self._backstop is not None:
            faulthandler.cancel_dump_traceback_later()
            self._backstop.close()
            unused = self._diagnostics / _BACKSTOP_FILE
            if unused.stat().st_size == 0:
                unused.unlink()
        self._lines.write(self._record())
        self._lines.close()

    def _watch(self) -> None:
        while True:
            self._lines.write(self._record())
            self._check_stall()
            self._arm_backstop()
            if self._closing.wait(self._interval_s):
                return

    def _record(self) -> dict[str, Any]:
        now, last, (advanced_s, progress) = time.monotonic(), self._last, self._advanced
        with self._process.oneshot():
            health = {
                "rss_mb": self._process.memory_info().rss / 2**20,
                "cpu_percent": self._process.cpu_percent(),
                "threads": self._process.num_threads(),
                "open_files": self._process.num_fds() if hasattr(self._process, "num_fds") else None,
            }
        return {
            "timestamp": time.time(),
            "pid": os.getpid(),
            "phase": last.phase,
            "phase_s": now - last.phase_began_s,
            "since_beat_s": now - max(last.at_s, advanced_s),
            "progress": progress if last.progress is None else last.progress,
            "stalled": self._alarms > 0,
            **last.counts,
            **health,
        }

    def _check_stall(self) -> None:
        if self._timeout_s <= 0:
            return
        last = self._last
        silent_s = time.monotonic() - max(last.at_s, self._advanced[0])
        if silent_s < self._timeout_s:
            if self._alarms:
                print(f"[train] continuing in phase '{last.phase}' after a stall")
            self._alarms = 0
            return
        if silent_s < self._timeout_s * 2**self._alarms:
            return
        self._alarms += 1
        reason = f"no sign of life for {silent_s:.0f} s in phase '{last.phase}'"
        page = format_stacks(reason)
        where = self._diagnostics / f"stall_{time.strftime('%Y%m%d_%H%M%S')}_{self._alarms}.log"
        try:
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_text(page)
            print(f"[train][warn] {reason}; all stacks are in {where}", flush=True)
        except OSError as error:
            print(f"[train][warn] {reason}; cannot write {where} ({error.strerror})\n{page}", flush=True)
        if self._on_stall is not None:
            self._on_stall(self._alarms)

    def _arm_backstop(self) -> None:
        """Native code that holds the interpreter lock stops this thread too; faulthandler's timer still runs."""
        if self._timeout_s <= 0:
            return
        if self._backstop is None:
            try:
                self._diagnostics.mkdir(parents=True, exist_ok=True)
                self._backstop = (self._diagnostics / _BACKSTOP_FILE).open("a")
            except OSError:
                return
        faulthandler.dump_traceback_later(self._timeout_s + self._interval_s, file=self._backstop)
