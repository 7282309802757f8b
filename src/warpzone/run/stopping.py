"""Stopping on purpose: Ctrl+C or SIGTERM once finishes the update, twice stops at once, never in a commit.
A second SIGTERM within a second of the first is the same one, as process managers may send it twice.

Exit codes of the command line:

| code | constant           | meaning                                                                 |
|------|--------------------|-------------------------------------------------------------------------|
| 0    | `EXIT_OK`          | everything that was asked for is done                                   |
| 1    | `EXIT_FAILED`      | an unexpected exception, non-finite weights, or a `--check` that failed |
| 2    | `EXIT_BAD_INPUT`   | a `warpzone.Error`: the one-sentence message says what to fix           |
| 3    | `EXIT_STALLED`     | stopped by the watchdog (`--on-stall stop`), `latest` saved             |
| 130  | `EXIT_INTERRUPTED` | stopped by SIGINT, `latest` saved                                       |
| 143  | `EXIT_TERMINATED`  | stopped by SIGTERM, `latest` saved                                      |
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from warpzone.checkpoints.uninterrupted import interrupt

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_STALLED = 3
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

_EXIT_CODES = {"SIGINT": EXIT_INTERRUPTED, "SIGTERM": EXIT_TERMINATED, "stall": EXIT_STALLED}
_HANDLED = (signal.SIGINT, signal.SIGTERM)
_SAME_S = 1.0
"""Seconds within which a second SIGTERM is the first one sent again."""


class StopFlag:
    """Turns signals into a wish to stop that the training loop reads between updates.

    with StopFlag() as stop:
        while not stop: ...
    return stop.exit_code
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        """`say` shows a line; by default on standard error. It is called inside the signal's handler."""
        self._say = say or _say
        self.reason: str | None = None
        """`SIGINT`, `SIGTERM`, `stall` or what `request` was given; None while the run may go on."""
        self._since = 0.0
        self._previous: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.reason is not None

    def request(self, reason: str) -> None:
        """Ask for a stop after this update, from any thread. The first reason is kept."""
        if self.reason is None:
            self.reason = reason

    @property
    def exit_code(self) -> int:
        return EXIT_OK if self.reason is None else _EXIT_CODES.get(self.reason, EXIT_OK)

    def __enter__(self) -> StopFlag:
        if threading.current_thread() is threading.main_thread():
            for number in _HANDLED:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self.reason is None:
            self.reason, self._since = name, time.monotonic()
            self._tell(f"[train][warn] interrupted ({name}): finishing this update; once more stops at once")
            return
        if name == self.reason == "SIGTERM" and time.monotonic() - self._since < _SAME_S:
            return
        self._tell(f"[train][warn] interrupted again ({name}): stopping now")
        interrupt(number)

    def _tell(self, line: str) -> None:
        try:
            self._say(line)
        except (RuntimeError, OSError):
            # The signal came while this thread was writing, and files refuse to be re-entered.
            _say(line)


def stop_on_stall(stop: StopFlag) -> Callable[[int], None]:
    """For `--on-stall stop`: asks for a stop when a stall is seen, and ends the process if it is still there later.

    The training thread is then beyond reach, and with it what it learned since the last `latest`.
    """

    def stalled(alarm: int) -> None:
        if alarm == 1:
            stop.request("stall")
        else:
            _say("[train][warn] stalled and does not stop: ending the process; the last `latest` is sound")
            os._exit(EXIT_STALLED)

    return stalled


def _say(line: str) -> None:
    # print() may be in the middle of a line on this very thread and refuses to be re-entered.
    try:
        sys.__stderr__.write(line + "\n")  # type: ignore[union-attr]
        sys.__stderr__.flush()  # type: ignore[union-attr]
    except (RuntimeError, OSError, AttributeError):
        pass
