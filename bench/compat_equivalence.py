"""Compares warpzone.compat with gym-super-mario-bros 7 on nes-py, step by step, and writes what differs.

    python bench/compat_equivalence.py --tapes 3 --steps 2000 --out docs/data/compat_equivalence.json

Each stage is played with random tapes of actions. At every step info, reward, done, all 2048 bytes of RAM and all
pixels are compared; an episode that ends is reset on both sides. Needs gym-super-mario-bros 7 with nes-py 8.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.envs.nes_py.patches import installed, patch_nes_py, quiet_gym

STYLES = ("simple", "right", "bytes")
"""Of a tape: SIMPLE_MOVEMENT held for some steps; the same, mostly to the right; any of the 256 bytes."""

BYTES = {"simple": (0, 128, 129, 130, 131, 1, 64), "right": (128, 129, 130, 131, 131, 131, 64)}


def original(target: tuple[int, int] | None, **arguments: Any) -> Any:
    """The environment of the real package."""
    patch_nes_py()
    with quiet_gym():
        from gym_super_mario_bros import SuperMarioBrosEnv
    return SuperMarioBrosEnv(target=target, **arguments)


def ours(target: tuple[int, int] | None, **arguments: Any) -> Any:
    """Its counterpart here."""
    from warpzone.compat.gym_super_mario_bros import SuperMarioBrosEnv

    return SuperMarioBrosEnv(target=target, **arguments)


def tape(style: str, seed: int, steps: int) -> Iterator[int]:
    """Actions as bytes, each held for up to 30 steps."""
    rng = np.random.default_rng(seed)
    left, action = 0, 0
    for _ in range(steps):
        if left == 0:
            left = int(rng.integers(1, 31))
            action = int(rng.integers(256)) if style == "bytes" else int(rng.choice(BYTES[style]))
            # Start pauses the game, and select does nothing: a tape of bytes should not stand still for long.
            action &= ~8 if rng.random() < 0.9 else 255
        left -= 1
        yield action


def differences(theirs: Any, mine: Any, actions: Iterator[int]) -> dict[str, Any]:
    """Plays the tape on both. How many steps differed in what, and the first of them."""
    count = dict.fromkeys(("steps", "episodes", "flags", "info", "reward", "done", "ram", "pixels"), 0)
    first: dict[str, str] = {}

    def note(what: str, differs: bool, detail: Any) -> None:
        count[what] += differs
        if differs and what not in first:
            first[what] = f"step {count['steps']}: {detail()}"

    def compare_memory() -> None:
        ram, pixels = theirs.ram != mine.ram, (theirs.screen != mine.screen).any(axis=-1)
        note("ram", bool(ram.any()), lambda: [hex(at) for at in np.flatnonzero(ram)[:8]])
        note(
            "pixels",
            bool(pixels.any()),
            lambda: f"{pixels.sum()} in lines {np.flatnonzero(pixels.any(axis=1))[:8]}",
        )

    theirs.reset(), mine.reset()
    compare_memory()
    for action in actions:
        count["steps"] += 1
        _, reward, done, info = theirs.step(action)
        _, my_reward, my_done, my_info = mine.step(action)
        note("info", info != my_info, lambda a=info, b=my_info: f"{a} and {b}")
        note("reward", reward != my_reward, lambda a=reward, b=my_reward: f"{a} and {b}")
        note("done", done != my_done, lambda a=done, b=my_done: f"{a} and {b}")
        compare_memory()
        count["flags"] += bool(info["flag_get"])
        if done or my_done:
            count["episodes"] += 1
            theirs.reset(), mine.reset()
            compare_memory()
    return {**count, "first": first}


def stage(job: tuple[int, int, int, int]) -> dict[str, Any]:
    """All tapes of one stage."""
    world, number, tapes, steps = job
    theirs, mine = original((world, number)), ours((world, number))
    began = time.perf_counter()
    result: dict[str, Any] = {"stage": f"{world}-{number}", "tapes": []}
    for index in range(tapes):
        style = STYLES[index % len(STYLES)]
        found = differences(theirs, mine, tape(style, 1000 * world + 100 * number + index, steps))
        result["tapes"].append({"style": style, **found})
    result["seconds"] = round(time.perf_counter() - began, 1)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", nargs="+", default=[f"{w}-{s}" for w in range(1, 9) for s in range(1, 5)])
    parser.add_argument("--tapes", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    jobs = [(int(name[0]), int(name[2]), args.tapes, args.steps) for name in args.stages]
    results = []
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        for result in pool.imap(stage, jobs):
            results.append(result)
            total = {key: sum(t[key] for t in result["tapes"]) for key in ("steps", "episodes", "flags")}
            bad = {
                key: sum(t[key] for t in result["tapes"])
                for key in ("info", "reward", "done", "ram", "pixels")
            }
            print(result["stage"], total, "differences", bad, f"{result['seconds']} s", flush=True)
    keys = ("steps", "episodes", "flags", "info", "reward", "done", "ram", "pixels")
    totals = {key: sum(t[key] for r in results for t in r["tapes"]) for key in keys}
    report = {
        "versions": {name: installed(name) for name in ("gym-super-mario-bros", "nes-py", "gym", "numpy")},
        "python": sys.version.split()[0],
        "machine": os.uname().machine,
        "totals": totals,
        "stages": results,
    }
    print(json.dumps(totals))
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    sys.exit(any(totals[key] for key in ("info", "reward", "done", "ram", "pixels")))


if __name__ == "__main__":
    main()
