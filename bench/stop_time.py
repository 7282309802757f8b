"""How long Ctrl+C takes: `warpzone train` with the default CPU preset is interrupted at random moments.

    python bench/stop_time.py

Trials resume the same run: during training, while recording a video, and during an evaluation, for which the run first
has to clear 1-1 once, or to `--start` from a checkpoint that does. Each must end with exit code 130 and a `latest` that
includes everything recorded, in less than 5 s.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tyro

from warpzone.checkpoints.saving import load_checkpoint
from warpzone.run.log import LOG_FILE
from warpzone.watch.metrics import METRICS_FILE, read_metrics

LIMIT_S = 5.0
MOMENTS = {
    "training": ("--until-clear-rate", "0"),
    "film": ("--until-clear-rate", "0", "--video-interval", "20"),
    "evaluation": ("--until-clear-rate", "0.01"),
}
"""When to stop, and the flags that bring about such moments."""


@dataclass(frozen=True)
class Config:
    trials: dict[str, int]
    """Trials per kind of moment."""
    start: str = ""
    """Checkpoint to start from."""
    seed: int = 0
    timeout_minutes: float = 20.0
    """Maximum wait for such a moment, in seconds."""


def stop_once(
    runs: Path, moment: str, start: str, chance: random.Random, timeout_s: float
) -> tuple[float, int, str]:
    """Seconds from Ctrl+C to the end, the update of `latest`, and the problem, if any."""
    run = runs / "mario"
    metrics, log = run / METRICS_FILE, run / LOG_FILE
    recorded, said = _read(metrics), _read(log).count(b"evaluating")
    signs: dict[str, Callable[[], bool]] = {
        "training": lambda: len(_read(metrics)) > len(recorded),
        "film": lambda: any((run / "videos").glob(".*.part")),
        "evaluation": lambda: _read(log).count(b"evaluating") > said,
    }
    command = [sys.executable, "-m", "warpzone.cli.main", "train", "--device", "cpu", "--runs-dir", str(runs)]
    flags = ["--preset", "cpu", *MOMENTS[moment], "--time-limit", "0"]
    if start and not (run / "checkpoints").exists():
        flags += ["--resume", start]
    with (runs / "out").open("wb") as out:
        process = subprocess.Popen([*command, *flags], stdout=out, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + timeout_s
            while not signs[moment]() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 5.0 if moment == "training" else 0.6))
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            code = process.wait()
            took_s = time.monotonic() - began
        finally:
            process.kill()
    update = load_checkpoint(run / "checkpoints" / "latest.pt").meta.global_update
    last = max((record["update"] for record in read_metrics(run)), default=0)
    if code != 130:
        return took_s, update, f"exit code {code}: {(runs / 'out').read_text()[-300:]}"
    return took_s, update, "" if update >= last else f"update {last} was done and {update} is saved"


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def main(config: Config) -> int:
    chance, worst, problems = random.Random(config.seed), 0.0, 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print("| moment | Ctrl+C to exit | saved | |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for moment in [name for name, times in config.trials.items() for _ in range(times)]:
            took_s, update, problem = stop_once(
                Path(folder), moment, config.start, chance, 60 * config.timeout_minutes
            )
            print(f"| {moment} | {took_s:.2f} s | update {update} | {problem} |", flush=True)
            worst, problems = max(worst, took_s), problems + bool(problem)
    print(f"slowest {worst:.2f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 1 if problems or worst >= LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, default=Config({"training": 4, "film": 3, "evaluation": 3}))))
