"""Kills and stops the hosts of one run at random moments, and checks that it never waits longer than it may.

python bench/cluster_faults.py [--faults 100] [--hosts 2] [--host-timeout 5] [--out FILE.json]

The run trains on a local cluster until all faults have happened. Exits with 1 if an update took longer than the limit,
or if the metrics do not add up.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import tyro
from rich.console import Console

from warpzone.cli.bench_results import write_json
from warpzone.cli.train import settings
from warpzone.cluster.build import host_environments
from warpzone.cluster.connection import connected
from warpzone.run.build import Placement
from warpzone.run.loop import train

START_ALLOWANCE_S = 20.0
"""For a new host to start on a busy machine, on top of the time limit."""


@dataclass(frozen=True)
class Config:
    faults: int = 100
    """Hosts to kill or stop."""
    hosts: int = 2
    host_timeout: float = 5.0
    every: float = 4.0
    """Mean seconds between two faults."""
    seed: int = 0
    out: Path | None = None
    """JSON file for the totals."""


class Watch:
    """A display that takes the time between updates, and ends the run when all faults have happened."""

    def __init__(self, faults: int) -> None:
        self.faults = faults
        self.done = 0
        self.longest_s = 0.0
        self.last: dict[str, Any] = {}
        self._at = time.monotonic()

    def update(self, record: dict[str, Any]) -> None:
        now = time.monotonic()
        if self.last:
            self.longest_s = max(self.longest_s, now - self._at)
        self._at, self.last = now, record
        if self.done >= self.faults and record["host_restarts"] >= self.done:
            signal.raise_signal(signal.SIGINT)

    def say(self, line: str) -> None:
        print(line, flush=True)


def hosts_now() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.name().startswith("ray::Host") and process.status() != psutil.STATUS_STOPPED:
                found.append(process)
    return found


def harm(config: Config, watch: Watch) -> None:
    """Kill or stop a host now and then; the next only when the last was replaced."""
    chance = random.Random(config.seed)
    while watch.done < config.faults:
        time.sleep(chance.expovariate(1 / config.every))
        running = hosts_now()
        if len(running) < config.hosts or watch.last.get("host_restarts", -1) < watch.done:
            continue
        with suppress(psutil.Error):
            chance.choice(running).send_signal(chance.choice([signal.SIGKILL, signal.SIGSTOP]))
            watch.done += 1


def main(config: Config) -> int:
    console, watch = Console(), Watch(config.faults)
    with tempfile.TemporaryDirectory() as runs, connected("local", local_cpus=config.hosts) as cluster:
        words = f"--preset cpu --device cpu --cluster local --env-hosts {config.hosts} --envs-per-host 8 --trails= "
        words += f"--host-timeout {config.host_timeout} --until-clear-rate 0 --time-limit 0 --log-interval 1 "
        words += (
            f"--minibatch-size 64 --no-record-video --no-enable-tensorboard --runs-dir {runs} --env-threads 1"
        )
        run = settings(words.split(), {})
        threading.Thread(target=harm, args=(config, watch), daemon=True).start()
        outcome = train(run, watch, Placement(partial(host_environments, cluster)))
    last, limit_s = watch.last, config.host_timeout + START_ALLOWANCE_S
    adds_up = last["global_step"] == last["update"] * run.collect.num_envs * run.collect.rollout_steps
    results = {
        "config": {**asdict(config), "out": None}, "faults": watch.done, "restarts": last["host_restarts"],
        "episodes_lost": last["episodes_lost"], "updates": outcome.progress.update,
        "decisions": outcome.progress.global_step, "longest_update_s": watch.longest_s, "limit_s": limit_s,
        "metrics_add_up": adds_up,
    }  # fmt: skip
    console.print(results)
    write_json(config.out, "cluster_faults.json", results, console)
    return 0 if adds_up and watch.longest_s <= limit_s and last["host_restarts"] >= config.faults else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config)))
