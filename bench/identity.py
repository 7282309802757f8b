"""Every way to run the game gives the same bytes: interpreter, skipping, translator, instruction sets, threads.

python bench/identity.py [--frames 10000000] [--movie FILE.fm2] [--minutes M] [--out results.json]

Plays the movie, if one is given, and random frames on consoles that differ only in their shortcuts, and compares
memory, cycles and screens; plays vectors of environments with every instruction set of this processor, on one
thread and on all, and compares observations, rewards and snapshots. Exits 1 at the first difference.

The random frames come in parts of PART, one per core at a time. After each part the results so far are written to
--out, and the same command continues there, unless the engine was built anew since. Two machines that played the same
parts must have the same digests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.cli.info import made
from warpzone.engine import Machine, _native
from warpzone.engine._native import instruction_sets
from warpzone.engine.rom import rom
from warpzone.envs.vector import MarioVectorEnv

WAYS = {
    "interpreter": {"skip_idle_loops": False, "translate": False},
    "waiting loops skipped": {"skip_idle_loops": True, "translate": False},
    "translator": {"skip_idle_loops": True, "translate": True},
}
HELD, ENVIRONMENTS, SKIP = 8, 16, 4
PART = 250_000
START, OPER_MODE, TITLE = 0x08, 0x770, 0
"""The button, and where the game's RAM says that it shows the title."""


def movie_buttons(path: Path) -> list[int]:
    """The first controller of an .fm2 movie, line k for frame k - 1."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    held = [sum(1 << (7 - i) for i, c in enumerate(line.split("|")[2]) if c not in ". ") for line in lines]
    return held[1:]


def random_buttons(turns: int, seed: tuple[int, int]) -> Iterator[int]:
    """Mostly runs to the right; now and then anything at all but start, which would pause the game."""
    dice = np.random.default_rng(seed)
    for _ in range(turns):
        anything = dice.random() < 0.2
        yield int(dice.integers(256)) & ~START if anything else int(dice.choice([0x80, 0x82, 0x83, 0x81]))


def compare_ways(buttons: Iterator[int], what: str) -> tuple[int, str]:
    """Frames played, the same in every way, and a digest of all their states."""
    machines = {name: Machine(rom()) for name in WAYS}
    frames, found = 0, hashlib.sha256()
    for turn, held in enumerate(buttons):
        count = 1 if what == "movie" else HELD
        if what == "random" and turn % 16 == 8 and next(iter(machines.values())).ram[OPER_MODE] == TITLE:
            held = START  # from power-on, and whenever all lives are lost
        frames += count
        drawn = turn % 16 == 0
        states = set()
        for name, machine in machines.items():
            machine.step(held, frames=count, render=drawn, **WAYS[name])
            screen = hashlib.sha256(machine.screen.tobytes()).digest() if drawn else b""
            states.add((machine.ram.tobytes(), machine.cycles, screen))
        if len(states) != 1:
            raise SystemExit(f"{what}: the ways part by frame {frames}")
        ram, cycles, screen = states.pop()
        found.update(ram + cycles.to_bytes(8, "little") + screen)
    return frames, found.hexdigest()


def digest(decisions: int, threads: int, seed: int) -> str:
    """Of everything that a vector gives over so many decisions in each environment."""
    found = hashlib.sha256()
    for options in ({}, {"max_pool": True, "sticky": 0.25, "noop_max": 30}):
        envs = MarioVectorEnv(
            ENVIRONMENTS, stages=["1-1", "1-2", "2-3", "4-4", "8-1"], threads=threads, seed=seed, **options
        )
        dice = np.random.default_rng(seed)
        envs.reset(seed=seed)
        for _ in range(decisions):
            observations, rewards, terminated, _, _ = envs.step(dice.integers(7, size=ENVIRONMENTS))
            for array in (observations, rewards, terminated):
                found.update(array.tobytes())
        found.update(envs.snapshot(0))
        envs.close()
    return found.hexdigest()


def compare_sets(frames: int, seed: int) -> dict[str, str]:
    """The digest of so many frames with each instruction set and number of threads."""
    decisions, found = max(frames // (2 * SKIP * ENVIRONMENTS), 1), {}
    for name in instruction_sets():
        for threads in (1, os.cpu_count() or 1):
            done = subprocess.run(
                [sys.executable, __file__, "--digest", str(decisions), str(threads), str(seed)],
                env={**os.environ, "WARPZONE_SIMD": name}, check=True, capture_output=True, text=True,
            )  # fmt: skip
            found[f"{name}, {threads} threads"] = done.stdout.strip()
    if len(set(found.values())) != 1:
        raise SystemExit(f"instruction sets or threads differ with seed {seed}: {found}")
    return found


def started(out: Path | None, seed: int) -> dict[str, Any]:
    """The results to continue, or empty ones."""
    engine = hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()[:16]
    fresh: dict[str, Any] = {
        "engine": engine, "seed": seed, "ways": list(WAYS), "parts": 0, "frames": {"random": 0}, "digests": {},
        "vectors": {"frames": 0, "digests": {}}, "seconds": 0.0,
    }  # fmt: skip
    if out and out.exists():
        before = json.loads(out.read_text())
        if (before.get("engine"), before.get("seed")) == (engine, seed) and fresh.keys() <= before.keys():
            return {key: before[key] for key in fresh}
        print(f"{out} is of another build or seed: starting anew", file=sys.stderr)
    return fresh


def play_part(seed: int, part: int, frames: int) -> tuple[int, str, dict[str, str]]:
    """So many random frames of each comparison."""
    played, states = compare_ways(random_buttons(max(frames // HELD, 1), (seed, part)), "random")
    return played, states, compare_sets(frames, seed * 1_000_003 + part)


def add_part(results: dict[str, Any], frames: int, outcome: tuple[int, str, dict[str, str]]) -> None:
    """Count a part's frames and chain its digests to those before."""
    played, states, sets = outcome
    chain(results["digests"], "random", states)
    for way, found in sets.items():
        chain(results["vectors"]["digests"], way, found)
    results["frames"]["random"] += played
    results["vectors"]["frames"] += frames
    results["parts"] += 1


def chain(digests: dict[str, str], name: str, found: str) -> None:
    digests[name] = hashlib.sha256((digests.get(name, "") + found).encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=10_000_000, help="random frames of each comparison")
    parser.add_argument("--movie", type=Path, help="an .fm2 movie from power-on")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="stop after the part at that time"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file for the results, to continue later")
    parser.add_argument(
        "--digest", type=int, nargs=3, metavar=("DECISIONS", "THREADS", "SEED"), help=argparse.SUPPRESS
    )
    given = parser.parse_args()
    if given.digest:
        print(digest(*given.digest))
        return
    results = started(given.out, given.seed)
    began, earlier = time.perf_counter(), results["seconds"]

    def report() -> dict[str, Any]:
        movie = f" --movie {given.movie.name}" if given.movie else ""  # not where it lies on this machine
        command = f"python bench/identity.py --frames {given.frames}{movie}"
        return {**made(), "command": command, **results}

    def record() -> None:
        results["seconds"] = round(earlier + time.perf_counter() - began, 1)
        if given.out:
            whole = given.out.with_suffix(".new")
            whole.write_text(json.dumps(report(), indent=2) + "\n")
            whole.replace(given.out)
        done = results["frames"]["random"]
        print(f"{done:,} of {given.frames:,} frames, {results['seconds']:,.0f} s", file=sys.stderr)

    if given.movie and "movie" not in results["frames"]:
        played, states = compare_ways(iter(movie_buttons(given.movie)), "movie")
        results["frames"]["movie"], results["digests"]["movie"] = played, states
        record()
    with ProcessPoolExecutor(cores := os.cpu_count() or 1) as pool:
        waiting: deque[tuple[int, Future[Any]]] = deque()
        planned, part = results["frames"]["random"], results["parts"]
        while True:
            in_time = time.perf_counter() - began < 60 * given.minutes
            while in_time and len(waiting) < cores and planned < given.frames:
                frames = min(given.frames - planned, PART)
                waiting.append((frames, pool.submit(play_part, given.seed, part, frames)))
                planned, part = planned + frames, part + 1
            if not waiting:
                break
            frames, played_part = waiting.popleft()
            add_part(results, frames, played_part.result())
            record()
    record()
    print(json.dumps(report(), indent=2))


if __name__ == "__main__":
    main()
