"""Two builds of the engine timed alternately, a few milliseconds each, so that what else the machine does hits both.

python bench/turns.py OLD NEW [--what gray|max|undrawn] [--turns 400]

OLD and NEW are the program `pool_benchmark` of two builds (cmake -S native). Prints the processor time of a
decision with each, and the ratio old / new of neighbouring turns: above 1, NEW is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from typing import IO, cast

from warpzone.engine.rom import rom_path


def sides(commands: dict[str, str], what: str) -> dict[str, subprocess.Popen[str]]:
    environment = {**os.environ, "WARPZONE_ROM": str(rom_path())}
    pipe = subprocess.PIPE
    return {
        name: subprocess.Popen([program, what, "turns"], stdin=pipe, stdout=pipe, text=True, env=environment)
        for name, program in commands.items()
    }


def turn(side: subprocess.Popen[str]) -> float:
    to, answer = cast(IO[str], side.stdin), cast(IO[str], side.stdout)
    to.write("\n")
    to.flush()
    return float(answer.readline())


def compare(old: str, new: str, what: str, turns: int) -> dict[str, object]:
    """Medians in microseconds, and the ratio with its middle half."""
    running = sides({"old": old, "new": new}, what)
    times: dict[str, list[float]] = {"old": [], "new": []}
    for i in range(turns):
        # In each pair another one first.
        for name in ("old", "new") if i % 2 else ("new", "old"):
            times[name].append(turn(running[name]))
    for side in running.values():
        cast(IO[str], side.stdin).close()
        side.wait()
    ratios = [a / b for a, b in zip(times["old"], times["new"], strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    return {
        "what": what,
        "turns": turns,
        "us_per_decision": {name: round(statistics.median(values), 2) for name, values in times.items()},
        "ratio": {"median": round(median, 3), "low": round(low, 3), "high": round(high, 3)},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--what", choices=("gray", "max", "undrawn"), default="gray")
    parser.add_argument("--turns", type=int, default=400)
    given = parser.parse_args()
    print(json.dumps(compare(given.old, given.new, given.what, given.turns), indent=2))
