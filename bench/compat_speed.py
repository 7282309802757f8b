"""Speed of warpzone.compat beside gym-super-mario-bros 7 on nes-py, measured in turns.

    python bench/compat_speed.py --rounds 30 --out docs/data/compat_speed.json

Each round times the original, one environment of ours and the native vector of 16 on two threads, one after another,
on stage 1-1 with the same random actions: every frame as 240 x 256 RGB, with info and reward. The vector is timed with
`copy=False`, with arrays that the caller may keep (`copying`, the default) and with some that it may also write to
(`writable`). Of the vector's results, the last one is held. What counts is the ratio within a round: rounds are short,
so that what else the machine does meets all alike. Given are its median, the 95 % interval of the median (by
resampling the rounds), and the range. Seconds are of the wall clock.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import warpzone.compat
from compat_equivalence import original, ours, tape
from medians import median_interval
from warpzone.cli.info import made


def single(env: Any, actions: list[int]) -> float:
    """Steps a second of one environment."""
    env.reset()
    began = time.perf_counter()
    for action in actions:
        if env.step(action)[2]:
            env.reset()
    return len(actions) / (time.perf_counter() - began)


def vector(envs: Any, actions: np.ndarray) -> float:
    """Steps a second of a vector, all its environments counted."""
    envs.reset()
    began = time.perf_counter()
    for row in actions:
        _ = envs.step(row)
    return actions.size / (time.perf_counter() - began)


def summary(values: list[float]) -> dict[str, float]:
    figures = {**median_interval(values), "min": min(values), "max": max(values)}
    return {name: round(v, 1) for name, v in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=60, help="steps of the original a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    theirs, mine = original((1, 1)), ours((1, 1))
    vectors = {
        name: warpzone.compat.vector("SuperMarioBros-1-1-v0", num_envs=16, threads=args.threads, **options)
        for name, options in {
            "vector": {"copy": False},
            "copying": {},
            "writable": {"writable": True},
        }.items()
    }
    many = np.array([list(tape("right", seed, 5 * args.steps)) for seed in range(16)]).T
    runs: dict[str, Callable[[int], float]] = {
        "original": lambda seed: single(theirs, list(tape("right", seed, args.steps))),
        "single": lambda seed: single(mine, list(tape("right", seed, 30 * args.steps))),
        **{name: lambda seed, envs=envs: vector(envs, many) for name, envs in vectors.items()},
    }
    for run in runs.values():  # the translator's first encounter with the game is not what is measured
        run(0)
    speed: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(args.rounds):
        for name, run in runs.items():
            speed[name].append(run(number))
        print({name: round(values[-1]) for name, values in speed.items()}, flush=True)
    ratio = {
        name: summary([a / b for a, b in zip(speed[name], speed["original"], strict=True)])
        for name in ("single", *vectors)
    }
    report = {
        **made(),
        "steps_per_second": {name: summary(values) for name, values in speed.items()},
        "times_the_original": ratio,
        "rounds": args.rounds,
        "environments": 16,
        "threads": args.threads,
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
    }
    print(json.dumps(ratio))
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
