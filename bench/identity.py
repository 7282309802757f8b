"""Every way to run the game gives the same bytes: interpreter, skipping, translator, instruction sets, threads.

python bench/identity.py [--frames 10000000] [--movie FILE.fm2] [--minutes M] [--out results.json]

Plays the movie, if one is given, and random frames on consoles that differ only in their shortcuts, and compares
memory, cycles and screens; plays vectors of environments with every instruction set of this processor, on one
thread and on all, and compares observations, rewards and snapshots. Exits 1 at the first difference.

The random frames come in parts of PART. After each part the results so far are written to --out, and the same
command continues there, unless the engine was built anew since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.cli.info import made
from warpzone.engine import Machine, _native
from warpzone.engine._native import net_kernels
from warpzone.engine.rom import rom
from warpzone.envs.vector import MarioVectorEnv

WAYS = {
    "interpreter": {"skip_idle_loops": False, "translate": False},
    "waiting loops skipped": {"skip_idle_loops": True, "translate": False},
    "translator": {"skip_idle_loops": True, "translate": True},
}
HELD, ENVIRONMENTS, SKIP = 8, 16, 4
PART = 50_000


def movie_buttons(path: Path) -> list[int]:
    """The first controller of an .fm2 movie, line k for frame k - 1."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    held = [sum(1 << (7 - i) for i, c in enumerate(line.split("|")[2]) if c not in ". ") for line in lines]
    return held[1:]


def random_buttons(frames: int, seed: tuple[int, int]) -> Iterator[int]:
    """Starts the game, then mostly runs to the right; now and then anything at all."""
    dice = np.random.default_rng(seed)
    yield from ([0] * 40 + [8] * 4 + [0] * 60)[:frames]
    for _ in range(max(frames - 104, 0)):
        anything = dice.random() < 0.2
        yield int(dice.integers(256)) & 0xF7 if anything else int(dice.choice([0x80, 0x82, 0x83, 0x81]))


def compare_ways(buttons: Iterator[int], what: str) -> int:
    """Frames played, the same in every way."""
    machines = {name: Machine(rom()) for name in WAYS}
    frames = 0
    for turn, held in enumerate(buttons):
        count = 1 if what == "movie" else HELD
        frames += count
        drawn = turn % 16 == 0
        states = set()
        for name, machine in machines.items():
            machine.step(held, frames=count, render=drawn, **WAYS[name])
            screen = hashlib.sha256(machine.screen.tobytes()).digest() if drawn else b""
            states.add((machine.ram.tobytes(), machine.cycles, screen))
        if len(states) != 1:
            raise SystemExit(f"{what}: the ways part by frame {frames}")
    return frames


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
    for name in net_kernels():
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
        "engine": engine, "seed": seed, "ways": list(WAYS), "parts": 0, "frames": {"random": 0},
        "vectors": {"frames": 0, "digests": {}}, "seconds": 0.0,
    }  # fmt: skip
    if out and out.exists():
        before = json.loads(out.read_text())
        if (before.get("engine"), before.get("seed")) == (engine, seed):
            return {key: before[key] for key in fresh}
        print(f"{out} is of another build or seed: starting anew", file=sys.stderr)
    return fresh


def play_part(results: dict[str, Any], frames: int) -> None:
    """Add so many random frames of each comparison."""
    seed, part = results["seed"], results["parts"]
    played = compare_ways(random_buttons(max(frames // HELD, 1), (seed, part)), "random")
    digests = compare_sets(frames, seed * 1_000_003 + part)
    before = results["vectors"]["digests"]
    results["vectors"]["digests"] = {
        way: hashlib.sha256((before.get(way, "") + now).encode()).hexdigest() for way, now in digests.items()
    }
    results["frames"]["random"] += played
    results["vectors"]["frames"] += frames
    results["parts"] += 1


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
        results["frames"]["movie"] = compare_ways(iter(movie_buttons(given.movie)), "movie")
        record()
    while (left := given.frames - results["frames"]["random"]) > 0:
        if time.perf_counter() - began > 60 * given.minutes:
            break
        play_part(results, min(left, PART))
        record()
    record()
    print(json.dumps(report(), indent=2))


if __name__ == "__main__":
    main()
