"""10,000 vectors created, reset, stepped and closed, from one thread, from several, and after a fork.

    python bench/lives.py [--lives 10000]

Fails if one hangs for a minute, if a thread is leaked or if memory keeps growing.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import threading
import time
from typing import Any

import numpy as np
import psutil
from rich.progress import track

import warpzone


def live(seed: int) -> None:
    """One vector from creation to close, slightly different each time."""
    dice = np.random.default_rng(seed)
    count = int(dice.integers(1, 9))
    options: dict[str, Any] = {"threads": int(dice.integers(1, 4)), "frame_skip": int(dice.integers(1, 5))}
    envs = warpzone.MarioVectorEnv(count, str(dice.choice(["1-1", "1-2", "4-4"])), seed=seed, **options)
    envs.reset(seed=seed)
    for _ in range(int(dice.integers(0, 6))):
        envs.step(dice.integers(7, size=count))
    if dice.random() < 0.3:
        envs.send(dice.integers(7, size=count))
    if dice.random() < 0.8:
        envs.close()


def live_in_child(seed: int) -> None:
    """A vector that is used on both sides of a fork."""
    envs = warpzone.MarioVectorEnv(4, "1-1", threads=2)
    envs.reset(seed=seed)
    child = os.fork()
    if child == 0:
        for _ in range(3):
            envs.step(np.ones(4, np.int64))
        envs.close()
        live(seed)
        os._exit(0)
    envs.step(np.ones(4, np.int64))
    envs.close()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError(f"the child of life {seed} ended with status {status}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lives", type=int, default=10_000)
    lives = parser.parse_args().lives
    process, began = psutil.Process(), time.perf_counter()
    samples: list[float] = []
    for seed in track(range(lives), description="lives"):
        faulthandler.dump_traceback_later(60, exit=True)
        if seed % 50 == 49:
            crowd = [threading.Thread(target=live, args=(seed * 10 + i,)) for i in range(4)]
            for thread in crowd:
                thread.start()
            for thread in crowd:
                thread.join()
        elif seed % 100 == 98:
            live_in_child(seed)
        else:
            live(seed)
        if seed % max(1, lives // 20) == 0:
            samples.append(process.memory_info().rss / 1e6)
    faulthandler.cancel_dump_traceback_later()
    left = process.num_threads()
    half = len(samples) // 2
    growth = float(np.mean(samples[half:]) - np.mean(samples[1:half])) if half > 1 else 0.0
    print(
        f"{lives} lives in {time.perf_counter() - began:.0f} s: {left} thread(s) left, "
        f"{samples[-1]:.0f} MB, {growth:+.1f} MB from the first half to the second"
    )
    # BLAS keeps its own threads; ours are joined.
    return 0 if left <= 1 + (os.cpu_count() or 1) and growth < 20 else 1


if __name__ == "__main__":
    sys.exit(main())
