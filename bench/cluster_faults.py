"""Kills and stops the hosts of one run at random moments: it never waits longer than it may, and learns all the same.

python bench/cluster_faults.py [--faults 100] [--hosts 2] [--host-timeout 5] [--out FILE.json]

The run trains on 1-1 on a local cluster until all faults have happened, or with --updates that many updates. Its policy
then plays 256 fresh episodes. Memory is read after every tenth update: `memory` holds, for the learner, the hosts and
Ray's own processes, the mebibytes in the second and in the last tenth of the run. Exits with 1 if an update took longer
than the limit, if the metrics do not add up, or if fewer hosts were replaced than were lost.
"""

from __future__ import annotations

import random
import signal
import statistics
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

from warpzone.api import load_agent
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
    updates: int = 0
    """Updates of the run (0 = until all faults have happened)."""
    seed: int = 0
    out: Path | None = None
    """JSON file for the totals."""


class Watch:
    """A display that takes the time between updates, and ends the run when all faults have happened."""

    def __init__(self, faults: int, updates: int) -> None:
        self.faults, self.updates = faults, updates
        self.memory: list[dict[str, float]] = []
        self.done = 0
        self.longest_s = 0.0
        self.last: dict[str, Any] = {}
        self._at = time.monotonic()

    def update(self, record: dict[str, Any]) -> None:
        now = time.monotonic()
        if self.last:
            self.longest_s = max(self.longest_s, now - self._at)
        self._at, self.last = now, record
        if record["update"] % 10 == 0:
            self.memory.append(memory_now())
        over = self.done >= self.faults and record["host_restarts"] >= self.done
        if over and record["update"] >= self.updates:
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


def memory_now() -> dict[str, float]:
    """Mebibytes of this process, of the largest host, of Ray's own processes, and of what lies in shared memory."""
    found = {"learner": psutil.Process().memory_info().rss, "host": 0, "ray": 0}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used = process.memory_info()
            if process.name().startswith("ray::Host"):
                found["host"] = max(found["host"], used.rss - used.shared)
            else:
                found["ray"] += used.rss - used.shared
    stored = sum(path.stat().st_blocks * 512 for path in Path("/dev/shm").glob("plasma*"))
    return {name: num / 2**20 for name, num in {**found, "object store": stored}.items()}


def growth(samples: list[dict[str, float]]) -> dict[str, list[float]]:
    """Medians of the second and of the last tenth of the samples."""
    tenth = max(1, len(samples) // 10)
    return {
        name: [
            round(statistics.median(one[name] for one in part), 1)
            for part in (samples[tenth : 2 * tenth], samples[-tenth:])
        ]
        for name in samples[0]
    }


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
    console, watch = Console(), Watch(config.faults, config.updates)
    with tempfile.TemporaryDirectory() as runs, connected("local", local_cpus=config.hosts) as cluster:
        words = f"--preset cpu --device cpu --cluster local --env-hosts {config.hosts} --envs-per-host 32 --trails= "
        words += f"--host-timeout {config.host_timeout} --until-clear-rate 0 --time-limit 0 --log-interval 1 "
        words += f"--no-record-video --no-enable-tensorboard --runs-dir {runs} --env-threads 1 --seed {config.seed}"
        run = settings(words.split(), {})
        threading.Thread(target=harm, args=(config, watch), daemon=True).start()
        outcome = train(run, watch, Placement(partial(host_environments, cluster)))
        (played,) = load_agent(outcome.folder).evaluate("1-1", episodes=256)
    last, limit_s = watch.last, config.host_timeout + START_ALLOWANCE_S
    adds_up = last["global_step"] == last["update"] * run.collect.num_envs * run.collect.rollout_steps
    results = {
        "config": {**asdict(config), "out": None}, "faults": watch.done, "restarts": last["host_restarts"],
        "episodes_lost": last["episodes_lost"], "updates": outcome.progress.update,
        "decisions": outcome.progress.global_step, "longest_update_s": watch.longest_s, "limit_s": limit_s,
        "metrics_add_up": adds_up, "seconds": outcome.progress.elapsed_s, "fresh": played.as_dict(),
        "memory": growth(watch.memory),
    }  # fmt: skip
    console.print(results)
    write_json(config.out, "cluster_faults.json", results, console)
    return 0 if adds_up and watch.longest_s <= limit_s and last["host_restarts"] >= config.faults else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config)))
