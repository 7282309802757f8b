"""How long `warpzone train` takes to its first line and to its first update, and `warpzone train -h` to its end.

python bench/startup.py [--rounds 5] [--before PYTHON] [--out FILE.json]

Seconds from the start of the process, by the clock and of processor time; the latter says more on a busy machine.
With `--before`, the Python of an environment that has another version, both versions take turns, and the ratio
before / now of each round is given too.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import tyro
from rich.console import Console

from warpzone.cli.bench_results import ratio, spread, write_json
from warpzone.watch.metrics import METRICS_FILE

TRAIN = ("train", "--preset", "cpu", "--device", "cpu", "--plain", "--no-record-video", "--log-interval", "1")
FIRST_LINE, FIRST_UPDATE, HELP = "first line", "first update", "train -h"
Times = dict[str, dict[str, float]]
"""Seconds by moment, then by kind: clock or processor."""


@dataclass(frozen=True)
class Config:
    rounds: int = 5
    """Starts of each version."""
    before: Path | None = None
    """Python of an environment with another version, to compare with."""
    before_version: str = ""
    """Which version that is, for the file."""
    timeout_s: float = 300.0
    """Longest wait for an update, in seconds."""
    out: Path | None = None
    """JSON file for the results."""


class Started:
    """A command of one version, and how long it has run."""

    def __init__(self, python: Path, *words: str) -> None:
        self.began = time.perf_counter()
        self.process = psutil.Popen(
            [str(python), "-m", "warpzone.cli.main", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def times(self) -> dict[str, float]:
        used = self.process.cpu_times()
        return {"clock": time.perf_counter() - self.began, "processor": used.user + used.system}

    def wait(self, is_there: Callable[[], bool], timeout_s: float) -> dict[str, float]:
        while not is_there():
            if not self.process.is_running() or self.times()["clock"] > timeout_s:
                sys.exit(
                    f"[startup] there was no update in {timeout_s:g} s: raise --timeout-s or see warpzone train"
                )
            time.sleep(0.005)
        return self.times()


def start_once(python: Path, timeout_s: float) -> Times:
    """Start a training and kill it after its first update; then ask for help."""
    with tempfile.TemporaryDirectory() as runs:
        metrics = Path(runs, "mario", METRICS_FILE)
        training = Started(python, *TRAIN, "--runs-dir", runs)
        try:
            line = training.process.stdout.readline()
            times = {FIRST_LINE: training.times()}
            if not line.startswith("["):
                sys.exit(f"[startup] the first line is {line!r}: see warpzone {' '.join(TRAIN)}")
            times[FIRST_UPDATE] = training.wait(
                lambda: metrics.exists() and metrics.stat().st_size > 0, timeout_s
            )
        finally:
            training.process.kill()
            training.process.wait()
    asked = Started(python, "train", "-h")
    asked.process.stdout.read()
    times[HELP] = asked.times()
    asked.process.wait()
    return times


def main(config: Config) -> None:
    console = Console(markup=False, highlight=False)
    sides = {"now": Path(sys.executable), **({"before": config.before} if config.before else {})}
    taken: dict[str, list[Times]] = {name: [] for name in sides}
    for number in range(1, config.rounds + 1):
        # In each round another one first.
        for name in sorted(sides, reverse=bool(number % 2)):
            taken[name].append(start_once(sides[name], config.timeout_s))
            shown = ", ".join(f"{moment} {t['processor']:.2f} s" for moment, t in taken[name][-1].items())
            console.print(f"[startup] {number} of {config.rounds}, {name}: {shown} of processor time")
    seconds = {
        name: {
            moment: {kind: [round(t[moment][kind], 3) for t in times] for kind in ("clock", "processor")}
            for moment in (FIRST_LINE, FIRST_UPDATE, HELP)
        }
        for name, times in taken.items()
    }
    results = {
        "before": config.before_version,
        "seconds": seconds,
        "load_average": round(os.getloadavg()[1], 1),
    }
    for moment, kinds in seconds["now"].items():
        middle = {kind: statistics.median(values) for kind, values in kinds.items()}
        line = f"{moment}: {middle['clock']:.2f} s, {middle['processor']:.2f} s of processor time"
        if config.before:
            gain = ratio(seconds["before"][moment]["processor"], kinds["processor"])
            results.setdefault("before_over_now", {})[moment] = gain
            line += f"; before / now {spread(gain)}"
        console.print(f"[startup] {line}")
    write_json(config.out, "startup.json", results, console)


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
