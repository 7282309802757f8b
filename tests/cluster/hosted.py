"""Environments on hosts without a run around them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np
import psutil
from numpy.typing import NDArray

from warpzone.cluster.connection import Cluster
from warpzone.cluster.environments import HostEnvironments
from warpzone.cluster.fleet import Fleet
from warpzone.cluster.host import HostSettings
from warpzone.envs.config import ViewConfig
from warpzone.envs.interface import spread_seeds
from warpzone.envs.rewards import RewardConfig, RewardShaper

VIEW = ViewConfig(frame_stack=1, noop_max=30, stall_limit=40)
STAGES = ("1-1", "1-2")


class Said(list[str]):
    """Lines that were said."""

    def __call__(self, line: str) -> None:
        self.append(line)


@contextmanager
def hosted(
    cluster: Cluster, hosts: int, each: int, *, groups: int = 1, timeout_s: float = 20.0, seed: int = 0
) -> Iterator[tuple[list[HostEnvironments], Said]]:
    """Groups of environments on hosts that share one cluster."""
    said, made = Said(), []

    def first(host: int, group: int, replaced: int) -> tuple[NDArray[np.uint64], Sequence[float] | None]:
        seeds = spread_seeds(seed + group + 100 * replaced, hosts * each)
        return seeds[host * each : (host + 1) * each], made[group].weights

    settings = HostSettings((VIEW,) * groups, each, STAGES, threads=1)
    fleet = Fleet(cluster, settings, hosts, timeout_s, first, said)
    made += [HostEnvironments(fleet, g, RewardShaper(RewardConfig(), hosts * each), 2) for g in range(groups)]
    try:
        yield made, said
    finally:
        fleet.close()


def started(name: str, by: int | None = None) -> set[psutil.Process]:
    """Processes that this one, or another, has started and whose names begin so. Ray names them after what they run."""
    found = set()
    for process in psutil.Process(by).children(recursive=True):
        # They come and go while they are looked at.
        with suppress(psutil.NoSuchProcess):
            if process.name().startswith(name) and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
    return found


def pids(cluster: Cluster, fleet: Fleet) -> list[int]:
    """The process of every host."""
    return [cluster.ray.get(slot.actor.__ray_call__.remote(lambda host: os.getpid())) for slot in fleet.slots]


def stop(pid: int, with_signal: signal.Signals) -> None:
    os.kill(pid, with_signal)
    if with_signal == signal.SIGKILL:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and os.path.exists(f"/proc/{pid}"):
            time.sleep(0.02)
