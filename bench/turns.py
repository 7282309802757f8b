"""Two builds of the engine timed alternately, a few milliseconds each, so that what else the machine does hits both.

python bench/turns.py OLD NEW [--what gray,max,undrawn] [--turns 400] [--old TEXT] [--new TEXT] [--out results.json]

OLD and NEW are the program `pool_benchmark` of two builds (cmake -S native), or the Pythons of two environments, which
then play on `MarioVectorEnv`. Prints the processor time of a decision with each, and the ratio old / new of
neighbouring turns: above 1, NEW is faster. `--old` and `--new` say which builds they are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import IO, cast

from warpzone.cli.info import made
from warpzone.engine.rom import rom_path

WHAT = ("gray", "max", "undrawn")
VECTOR = """
import sys, time
import numpy as np
import warpzone

envs = warpzone.MarioVectorEnv(64, "1-1", threads=1, seed=0, max_pool=sys.argv[1] == "max")
dice = np.random.default_rng(0)
plan = dice.integers(7, size=(256, 64))
plan[dice.random(plan.shape) < 0.5] = 4
envs.reset(seed=0)
for turn, _ in enumerate(sys.stdin):
    began = time.process_time()
    for step in range(4):
        envs.step(plan[(4 * turn + step) % 256])
    print((time.process_time() - began) / 256 * 1e6, flush=True)
"""
"""The same random play as `warpzone bench env`: microseconds of processor time for a decision, four steps a turn."""


def side(program: str, what: str) -> list[str]:
    """The command of a side."""
    if not Path(program).name.startswith("python"):
        return [program, what, "turns"]
    if what == "undrawn":
        raise SystemExit("Environments always draw: choose --what gray or max with a Python.")
    return [program, "-I", "-c", VECTOR, what]


def sides(commands: dict[str, str], what: str) -> dict[str, subprocess.Popen[str]]:
    environment = {**os.environ, "WARPZONE_ROM": str(rom_path())}
    pipe = subprocess.PIPE
    return {
        name: subprocess.Popen(side(program, what), stdin=pipe, stdout=pipe, text=True, env=environment)
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old_program", metavar="OLD")
    parser.add_argument("new_program", metavar="NEW")
    parser.add_argument("--what", default="gray", help=f"one or more of {','.join(WHAT)}")
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--old", default="", help="which build OLD is")
    parser.add_argument("--new", default="", help="which build NEW is")
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    given = parser.parse_args()
    chosen = given.what.split(",")
    if set(chosen) - set(WHAT):
        parser.error(f"--what takes {', '.join(WHAT)}")
    results = {
        **made(),
        # Where the programs lie on this machine says nothing.
        "command": f"python bench/turns.py OLD NEW --what {given.what} --turns {given.turns}",
        "load_average": round(os.getloadavg()[0], 1),
        "old": given.old,
        "new": given.new,
        "results": [compare(given.old_program, given.new_program, what, given.turns) for what in chosen],
    }
    print(json.dumps(results, indent=2))
    if given.out:
        given.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
