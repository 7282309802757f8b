"""Slow steps: where several in a window take too long, the stacks of all threads go into a file, once per window."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from warpzone.watch.stacks import format_stacks

_SHORTEST_LOOK_S = 0.005


class _SlowStep(NamedTuple):
    ended_s: float
    took_s: float
    page: str


class SlowStepTracer:
    """Times steps. A thread takes the stacks while a step is slow, so that they show what it is waiting for.

    One slow step may be due to the system; `count` of them within `window_s` write a file. `threshold_s` 0 disables
    tracing.
    """

    def __init__(self, folder: Path, *, threshold_s: float, window_s: float = 60.0, count: int = 3) -> None:
        self._folder = folder
        self._threshold_s = threshold_s
        self._window_s = window_s
        self._count = count
        self._slow: deque[_SlowStep] = deque(maxlen=16)
        self._began_s: float | None = None
        self._page: tuple[float, str] | None = None
        self._quiet_until_s = 0.0
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        if threshold_s > 0:
            self._thread = threading.Thread(target=self._look, name="slow-steps", daemon=True)
            self._thread.start()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Time the block as one step."""
        began_s = self._began_s = time.monotonic()
        try:
            yield
        finally:
            self._began_s = None
            if 0 < self._threshold_s < time.monotonic() - began_s:
                self._count_slow(began_s, time.monotonic())

    def _count_slow(self, began_s: float, now: float) -> None:
        taken = self._page
        page = taken[1] if taken and taken[0] == began_s else format_stacks("after the step")
        self._slow.append(_SlowStep(now, now - began_s, page))
        while now - self._slow[0].ended_s > self._window_s:
            self._slow.popleft()
        if len(self._slow) >= self._count and now >= self._quiet_until_s:
            self._quiet_until_s = now + self._window_s
            self._write()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _write(self) -> None:
        steps = list(self._slow)
        self._slow.clear()
        path = self._folder / f"slow_step_trace_{time.strftime('%Y%m%d_%H%M%S')}.log"
        head = f"{len(steps)} steps of more than {self._threshold_s:g} s within {self._window_s:g} s\n"
        pages = [f"\nstep of {step.took_s:.3f} s\n{step.page}" for step in steps]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_text(head + "".join(pages))
        except OSError as error:
            print(f"[train][warn] slow steps, and {path} cannot be written ({error.strerror})")
        else:
            print(f"[train][warn] {head.strip()}; stacks are in {path}")

    def _look(self) -> None:
        pause_s = max(self._threshold_s / 2, _SHORTEST_LOOK_S)
        while not self._closing.wait(pause_s):
            began_s = self._began_s
            if began_s is None or (self._page is not None and self._page[0] == began_s):
                continue
            took_s = time.monotonic() - began_s
            if took_s > self._threshold_s:
                self._page = (began_s, format_stacks(f"{took_s:.3f} s into the step"))
