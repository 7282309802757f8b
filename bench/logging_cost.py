"""What logging costs: the default CPU training with everything recorded and with nothing, alternating within one run.

    python bench/logging_cost.py --minutes 5

A window is a second or two of the real training loop on 1-1. In every other window nothing is recorded: no metrics,
episodes, TensorBoard curves, Parquet, heartbeat, resource monitor, slow-step tracer or environment meters.

Prints what recording adds to a window, in wall time and processor time, as the median over groups of four (on, off,
off, on) with its standard error. On a shared machine that error is large, so the processor time of the recorders and
their threads is counted as well; exits with 1 if it is 2 % of all processor time or more.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from warpzone.cli.train import settings
from warpzone.run import loop, session
from warpzone.run.folder import RunFolder
from warpzone.run.meters import EnvironmentMeter
from warpzone.watch.heartbeat import Heartbeat
from warpzone.watch.resources import ResourceMonitor
from warpzone.watch.slow_steps import SlowStepTracer

LIMIT = 0.02
SLOW_STEP_S = 5.0
WARM_UP_S = 20.0


@dataclass(frozen=True)
class Config:
    minutes: float = 5.0
    records: int = 1
    """Records of the metrics in a window; there is one every five updates."""
    threads: int = 0
    """Threads that emulate and learn (0 = the preset's). With one thread, none spins while waiting for another that
    other work has delayed."""


@dataclass(frozen=True)
class Window:
    is_on: bool
    wall_s: float
    cpu_s: float
    """Processor time of the whole process."""
    recording_s: float
    """Processor time of the recorders and their threads."""


class Silence:
    """Stands in for anything that records."""

    def write(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(values)

    def beat(self, *_: Any, **__: Any) -> None:
        pass

    def advance(self, progress: float) -> None:
        pass

    def latest(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


class Switch:
    """Whether recording is on, and the processor time that its calls on the training thread took."""

    is_on = True
    spent_s = 0.0
    folder: SwitchedFolder


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            Switch.spent_s += time.thread_time() - began

    return call


class SwitchedFolder(RunFolder):
    """A run's folder whose recording can be switched off and on again."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.metrics.write = counted(self.metrics.write)  # type: ignore[method-assign]
        self.episodes._lines.write = counted(self.episodes._lines.write)  # type: ignore[method-assign]
        self.recorders = (self.metrics, self.episodes._lines)
        Switch.folder = self

    def switch(self, is_on: bool) -> None:
        Switch.is_on = is_on
        silence: Any = Silence()
        self.heartbeat.close()
        self.resources.close()
        self.slow_steps.close()
        self.metrics, self.episodes._lines = self.recorders if is_on else (silence, silence)
        self.heartbeat = Heartbeat(self.path / "heartbeat.jsonl") if is_on else silence
        self.resources = ResourceMonitor() if is_on else silence
        self.slow_steps = SlowStepTracer(
            self.path / "diagnostics", threshold_s=SLOW_STEP_S if is_on else 0.0, window_s=60.0
        )

    def close(self) -> None:
        self.metrics, self.episodes._lines = self.recorders
        super().close()


class SwitchedMeter(EnvironmentMeter):
    """Meters the environments only while recording is on."""

    def observe(self, columns: slice, info: Mapping[str, Any], scale: float) -> None:
        if Switch.is_on:
            counted(super().observe)(columns, info, scale)


class Windows:
    """A display that receives every record, ends windows and switches between them: on off off on."""

    def __init__(self, records: int) -> None:
        self.length = records
        self.windows: list[Window] = []
        self._warm_at_s = time.monotonic() + WARM_UP_S
        self._begin()

    def update(self, record: dict[str, Any]) -> None:
        self._records += 1
        if self._records < self.length or time.monotonic() < self._warm_at_s:
            return
        threads_s = sum(s - self._threads.get(thread, 0.0) for thread, s in _threads_s().items())
        wall_s, cpu_s, spent_s = self._clocks()
        self.windows.append(
            Window(
                Switch.is_on,
                wall_s - self._began[0],
                cpu_s - self._began[1],
                spent_s - self._began[2] + threads_s,
            )
        )
        if self._warm_at_s:
            # The window of the warm-up.
            self.windows.clear()
        Switch.folder.switch(len(self.windows) % 4 in (0, 3))
        self._begin()
        self._warm_at_s = 0.0

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _begin(self) -> None:
        self._records = 0
        self._threads = _threads_s()
        self._began = self._clocks()

    def _clocks(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), Switch.spent_s


def _threads_s() -> dict[int, float]:
    """Processor time of every Python thread but this one; on Linux only."""
    found = {}
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and thread.native_id is not None:
            with suppress(OSError):
                text = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
                found[thread.native_id] = int(text.split()[0]) / 1e9
    return found


def added(windows: list[Window], seconds: Callable[[Window], float]) -> list[float]:
    """What recording added, as a share, for every four windows in a row: a steady drift cancels out."""
    groups = [windows[at : at + 4] for at in range(0, len(windows) - 3, 4)]
    return [
        sum(seconds(w) for w in group if w.is_on) / sum(seconds(w) for w in group if not w.is_on) - 1
        for group in groups
    ]


def main(config: Config) -> int:
    session.RunFolder = SwitchedFolder  # type: ignore[misc]
    session.EnvironmentMeter = SwitchedMeter  # type: ignore[misc]
    display = Windows(config.records)
    with tempfile.TemporaryDirectory() as folder:
        chosen = settings(["--preset", "cpu", "--device", "cpu", "--runs-dir", folder], {})
        chosen = replace(
            chosen,
            run=replace(
                chosen.run,
                until_clear_rate=0.0,
                time_limit=config.minutes,
                torch_threads=config.threads,
            ),
            stage=replace(chosen.stage, env_threads=config.threads),
            watch=replace(chosen.watch, slow_step_trace_threshold=SLOW_STEP_S),
            # Checkpoints are not logging and would fall into arbitrary windows.
            checkpoint=replace(chosen.checkpoint, latest_every_updates=0, latest_every_s=0.0),
        )
        loop.train(chosen, display)
    windows = display.windows
    if len(windows) < 12:
        sys.exit(f"only {len(windows)} windows were completed: use more --minutes")
    updates = config.records * chosen.run.log_interval
    off_s = statistics.median(w.wall_s for w in windows if not w.is_on)
    steps = updates * chosen.collect.num_envs * chosen.collect.rollout_steps
    print(f"{len(windows)} windows of {updates} updates, {steps / off_s:,.0f} decisions/s without recording")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    clocks: dict[str, Callable[[Window], float]] = {
        "by the clock": lambda w: w.wall_s,
        "in processor time": lambda w: w.cpu_s,
    }
    for name, seconds in clocks.items():
        shares = added(windows, seconds)
        # The standard error of a median is about 1.25 times that of a mean.
        error = 1.25 * statistics.stdev(shares) / math.sqrt(len(shares))
        print(f"added {name}: {statistics.median(shares):+.2%} ± {error:.2%} ({len(shares)} groups)")
    on = [w for w in windows if w.is_on]
    share = sum(w.recording_s for w in on) / (sum(w.cpu_s for w in on) - sum(w.recording_s for w in on))
    print(f"counted in the recorders: {share:.2%} of the processor time of everything else")
    return 1 if share >= LIMIT else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
