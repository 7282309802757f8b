"""All threads of a vector of environments against one, beside emulators that share nothing and never wait.

python bench/threads.py [--num-envs 64] [--threads 0] [--seconds 4] [--out FILE.json]

Both sides alternate every 50 ms, so that whatever else the machine does hits both. The emulators say what the cores
themselves give.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from warpzone.cli.bench_env import machine_side, vector_side
from warpzone.cli.bench_results import rate, spread, write_json
from warpzone.envs.config import thread_count

BURST_S = 0.05


@dataclass(frozen=True)
class Config:
    num_envs: int = 64
    """Environments of the vector."""
    threads: int = 0
    """Threads of the wide side (0 = one per core)."""
    seconds: float = 4.0
    """Seconds of each comparison."""
    out: Path | None = None
    """JSON file for the results."""


def paired(narrow: Callable[[], int], wide: Callable[[], int], seconds: float) -> dict[str, Any]:
    """How many times as fast `wide` is, and the frames per second of both: medians and the middle half of each."""
    pairs: list[tuple[float, float]] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pairs.append((rate(narrow, BURST_S), rate(wide, BURST_S)))
    return {
        **quartiles([every / one for one, every in pairs]),
        "frames_per_s": {"one": quartiles([one for one, _ in pairs]), "all": quartiles([every for _, every in pairs])},
    }  # fmt: skip


def quartiles(found: list[float]) -> dict[str, float]:
    low, median, high = statistics.quantiles(found, n=4) if len(found) > 1 else found * 3
    return {"median": median, "low": low, "high": high}


def apart(threads: int) -> Callable[[], int]:
    """As many emulators as threads that share nothing and never wait."""
    machines = [machine_side(draw=True) for _ in range(threads)]
    team = ThreadPoolExecutor(threads)

    def play() -> int:
        return sum(team.map(lambda play: play(), machines))

    return play


def main(config: Config) -> int:
    n, wide = config.num_envs, thread_count(config.threads, config.num_envs)
    results = {
        "vector": paired(vector_side(n, 1), vector_side(n, wide), config.seconds),
        "emulators that share nothing": paired(apart(1), apart(wide), config.seconds),
    }
    for name, times in results.items():
        frames = spread(times["frames_per_s"]["all"], ",.0f")
        print(f"{name}: {wide} threads run {spread(times)} times as fast as one, {frames} frames/s")
    write_json(config.out, "threads.json", {"threads": wide, **results}, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
