"""How far away the nodes of a cluster are: round trip and bandwidth, as a run would see them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.cluster.connection import NODES_S, Cluster

CALLS = 30
BLOCK_BYTES, BLOCKS = 16 << 20, 3


@dataclass(frozen=True)
class Distance:
    """Of a node from this process."""

    round_trip_ms: float
    """Median of a call that does nothing."""
    mb_per_s: float
    """Fastest of a few large transfers to this process."""


class Probe:
    """Runs on a node and answers."""

    def nothing(self) -> None: ...

    def block(self, fill: int) -> NDArray[np.uint8]:
        return np.full(BLOCK_BYTES, fill, np.uint8)


def distance(cluster: Cluster, node: Mapping[str, Any]) -> Distance:
    """Measure one node. Raises Ray's own errors if it goes away meanwhile."""
    ray = cluster.ray
    there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    probe = ray.remote(Probe).options(num_cpus=0, scheduling_strategy=there).remote()
    try:
        ray.get(probe.nothing.remote(), timeout=NODES_S)
        trips = [_timed(ray, probe.nothing.remote) for _ in range(CALLS)]
        rates = []
        for fill in range(BLOCKS):
            ready = probe.block.remote(fill)
            ray.wait([ready], timeout=NODES_S, fetch_local=False)
            rates.append(BLOCK_BYTES / 1e6 / _timed(ray, lambda ready=ready: ready))
        return Distance(1e3 * statistics.median(trips), max(rates))
    finally:
        cluster.kill(probe)


def _timed(ray: Any, call: Any) -> float:
    began = time.perf_counter()
    ray.get(call(), timeout=NODES_S)
    return time.perf_counter() - began
