"""The real `warpzone` command in a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.warm import Process, Result

COMMAND = [sys.executable, "-m", "warpzone.cli.main"]
SMALL = (
    *("--preset", "cpu", "--device", "cpu", "--torch-threads", "1", "--env-threads", "1", "--num-envs", "8"),
    *("--rollout-steps", "16", "--minibatch-size", "64", "--log-interval", "1", "--until-clear-rate", "0"),
)
"""A run whose updates take a fraction of a second."""


def clean_environment() -> dict[str, str]:
    """The environment without variables that are flags, and quick to start in."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if k.startswith(("PATH", "HOME", "LANG", "PYTHON", "WARPZONE", "TMP"))
    }
    return {**kept, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}


def warpzone(folder: Path, *argv: str, timeout_s: float = 180, **environ: str) -> Result:
    """Run a command in `folder` to its end."""
    env = {**clean_environment(), **environ}
    return Process(COMMAND[-1], *argv, folder=folder, env=env).end(timeout_s)


class Training:
    """A training that goes on until it is told to stop."""

    def __init__(self, folder: Path, *flags: str) -> None:
        run = folder / "runs" / "mario"
        self.metrics, self.heartbeat, self.log = (
            run / name for name in ("metrics.jsonl", "heartbeat.jsonl", "train.log")
        )
        self.process = Process(COMMAND[-1], "train", *flags, folder=folder, env=clean_environment())

    def wait_for_update(self, update: int, timeout_s: float = 120) -> None:
        """Return once the metrics have a record of this update or a later one."""
        self._wait(lambda: len(self.metrics.read_bytes().splitlines()) >= update, timeout_s)

    def wait_for_phase(self, phase: str, timeout_s: float = 120) -> None:
        """Return once the heartbeat has seen this phase."""
        self._wait(lambda: f'"phase":"{phase}"' in self.heartbeat.read_text(), timeout_s)

    def wait_for_line(self, words: str, timeout_s: float = 120) -> None:
        """Return once the run has said this."""
        self._wait(lambda: words in self.log.read_text(), timeout_s)

    def _wait(self, has_come: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                if has_come():
                    return
            assert self.process.poll() is None, self.process.end()
            time.sleep(0.02)
        raise AssertionError(f"nothing after {timeout_s} s")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, timeout_s: float = 120) -> Result:
        """What it said in the end."""
        return self.process.end(timeout_s)

    def kill(self) -> None:
        self.process.kill()
