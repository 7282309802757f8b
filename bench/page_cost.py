"""What the live page costs a training: no viewer, one, two, and one that was just killed, alternating beside one run.

    python bench/page_cost.py                                            # eight minutes
    python bench/page_cost.py --rounds 1 --window-s 2.5 --settle-s 1     # half a minute, to see that it works

The default CPU training on 1-1 runs as one process and `warpzone watch` as another, as a user has them. A viewer is a
process that does what a tab does: it follows the run's updates and the agent playing. Every window with viewers is
compared with the windows without viewers before and after it; the median of these ratios of decisions per second is
printed with its quartiles and standard error. Viewers of a real page are on other machines; here they share the
training's cores, so the processor time of the page and of the viewers is printed as well. Exits with 1 if a viewer saw
nothing, or if one viewer, a killed viewer or the page's work for a second viewer costs 3 % or more.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tyro
from numpy.typing import NDArray

from warpzone.watch.metrics import read_metrics

Numbers = NDArray[np.float64]
LIMIT = 0.03
PATIENCE_S = 120.0
WARPZONE = [sys.executable, "-m", "warpzone.cli.main"]
TRAIN = [
    *("train", "--preset", "cpu", "--device", "cpu", "--run-name", "cost", "--plain", "--log-interval", "1"),
    *("--until-clear-rate", "0", "--time-limit", "0", "--latest-every-updates", "20", "--no-record-video"),
]
KINDS = ("one viewer", "two viewers", "a killed viewer")


@dataclass(frozen=True)
class Config:
    rounds: int = 16
    """Rounds; each has one window of every kind, with windows without a viewer between them."""
    window_s: float = 4.0
    settle_s: float = 1.0
    """Seconds for viewers to come and go before a window."""
    warmup_s: float = 4.0
    """Seconds for the training to reach its speed after a first visit to the page."""
    train: tuple[str, ...] = ()
    """More flags for the training."""
    viewer: str = ""
    """For the script's own use: be a viewer of the page at this address."""


@dataclass(frozen=True)
class Window:
    kind: str
    began: float
    ended: float
    page_s: float
    """Processor time of the page in it."""
    viewers_s: float
    """Processor time of all viewers together."""

    def rate(self, times: Numbers, steps: Numbers) -> float:
        """Decisions per second, between records too."""
        first, last = np.interp([self.began, self.ended], times, steps)
        return float(last - first) / (self.ended - self.began)


class Viewer:
    """A process that looks at the page."""

    def __init__(self, address: str) -> None:
        command = [sys.executable, __file__, "--viewer", address]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def processor_s(self) -> float:
        return processor_s(self._process)

    def wait_until_it_sees(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "sees\n":
            raise RuntimeError("a viewer could not see the page")

    def leave(self) -> tuple[int, int]:
        """Close the tab; returns the messages and frames it received."""
        said, _ = self._process.communicate("", timeout=PATIENCE_S)
        news, pictures = json.loads(said)
        return news, pictures

    def kill(self) -> None:
        """As if the browser had been killed: the sockets are not closed."""
        self._process.kill()
        self._process.communicate()


def processor_s(process: subprocess.Popen[Any]) -> float:
    """Seconds of processor time that a process has used so far."""
    used = psutil.Process(process.pid).cpu_times()
    return float(used.user + used.system)


def view(address: str) -> None:
    """Be a viewer until standard input ends, then print what was seen."""
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    seen = {"live": 0, "play": 0}
    both = threading.Barrier(3)

    def look(what: str) -> None:
        try:
            with connect(f"{address}/{what}") as page:
                for message in page:
                    seen[what] += what == "live" or isinstance(message, bytes)
                    if seen[what] == 1 and not both.broken:
                        both.wait(PATIENCE_S)
        except (WebSocketException, OSError, threading.BrokenBarrierError):
            return

    for what in seen:
        threading.Thread(target=look, args=(what,), daemon=True).start()
    both.wait(PATIENCE_S)
    both.abort()
    print("sees", flush=True)
    sys.stdin.read()
    print(json.dumps(list(seen.values())), flush=True)


def wait_for(path: Path, training: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        if training.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the training did not write {path.name}")
        time.sleep(0.2)


def measure(config: Config, address: str, page: subprocess.Popen[Any]) -> tuple[list[Window], int, int]:
    """The windows, starting and ending with one without viewers; the messages and frames that viewers received."""
    windows: list[Window] = []
    news = pictures = 0

    def window(kind: str, viewers: list[Viewer]) -> None:
        time.sleep(config.settle_s)
        page_s, viewers_s = processor_s(page), sum(viewer.processor_s() for viewer in viewers)
        began = time.time()
        time.sleep(config.window_s)
        page_s = processor_s(page) - page_s
        viewers_s = sum(viewer.processor_s() for viewer in viewers) - viewers_s
        windows.append(Window(kind, began, time.time(), page_s, viewers_s))

    for number in range(config.rounds):
        # Another order in every round, so that no kind always follows the same one.
        for kind in KINDS[number % 3 :] + KINDS[: number % 3]:
            window("", [])
            viewers = [Viewer(address) for _ in range(2 if kind == "two viewers" else 1)]
            for viewer in viewers:
                viewer.wait_until_it_sees()
            if kind == "a killed viewer":
                viewers.pop().kill()
            window(kind, viewers)
            for viewer in viewers:
                got = viewer.leave()
                news, pictures = news + got[0], pictures + got[1]
    window("", [])
    return windows, news, pictures


def report(windows: list[Window], times: Numbers, steps: Numbers) -> float:
    """Print the ratios; returns the largest median cost."""
    rates = [window.rate(times, steps) for window in windows]
    alone = [rate for window, rate in zip(windows, rates, strict=True) if not window.kind]
    spread = np.percentile(alone, [25, 75])
    print(
        f"no viewer: {statistics.median(alone):,.0f} decisions/s ({spread[0]:,.0f} to {spread[1]:,.0f}) "
        f"in {len(alone)} windows"
    )
    worst = 0.0
    for kind in KINDS:
        ratios = [
            rates[i] / ((rates[i - 1] + rates[i + 1]) / 2) for i, w in enumerate(windows) if w.kind == kind
        ]
        middle, (low, high) = statistics.median(ratios), np.percentile(ratios, [25, 75])
        error = "unknown"
        if len(ratios) > 1:
            # Of a median, for errors that are roughly normal.
            error = f"{1.2533 * statistics.stdev(ratios) / len(ratios) ** 0.5:.3f}"
        print(
            f"{kind}: {middle:.3f} of that speed (quartiles {low:.3f} to {high:.3f}, "
            f"standard error {error}, {len(ratios)} windows)"
        )
        if kind != "two viewers":
            worst = max(worst, 1 - middle)
    return worst


def report_processor_time(windows: list[Window]) -> float:
    """Print the processor time by process; returns the page's cost of a second viewer, as a share of the machine."""

    def shares(kind: str) -> tuple[float, float]:
        """Of a core: the page's and the viewers'."""
        mine = [w for w in windows if w.kind == kind]
        page = statistics.median(w.page_s / (w.ended - w.began) for w in mine)
        viewers = statistics.median(w.viewers_s / (w.ended - w.began) for w in mine)
        print(f"{kind or 'no viewer'}: the page takes {page:.1%} of a core, viewers {viewers:.1%}")
        return page, viewers

    shares("")
    one, _ = shares("one viewer")
    two, _ = shares("two viewers")
    shares("a killed viewer")
    second = (two - one) / (os.cpu_count() or 1)
    print(f"a second viewer costs the page {second:.2%} of the machine")
    return second


def main(config: Config) -> int:
    if config.viewer:
        view(config.viewer)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--runs-dir", folder, *config.train]
        with (Path(folder) / "said").open("wb") as said:
            training = subprocess.Popen([*WARPZONE, *TRAIN, *flags], stdout=said, stderr=said)
        processes: list[subprocess.Popen[Any]] = [training]
        try:
            wait_for(Path(folder) / "cost" / "checkpoints" / "latest.pt", training)
            command = [*WARPZONE, "watch", "cost", "--runs-dir", folder, "--port", "0"]
            page = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            processes.append(page)
            assert page.stdout is not None
            host = page.stdout.readline().split()[1].split("/")[2]
            address = f"ws://{host}/api/runs/cost"
            first = Viewer(address)
            first.wait_until_it_sees()
            first.leave()
            time.sleep(config.warmup_s)
            windows, news, pictures = measure(config, address, page)
            if training.poll() is not None:
                raise RuntimeError("the training ended before the measurement did")
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(PATIENCE_S)
        records = read_metrics(Path(folder) / "cost")
    times = np.array([record["timestamp"] for record in records])
    steps = np.array([record["global_step"] for record in records])
    worst = max(report(windows, times, steps), report_processor_time(windows))
    print(
        f"viewers received {news} messages and {pictures} frames; load average "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    return 0 if news and pictures and worst < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
