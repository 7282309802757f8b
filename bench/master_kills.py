"""Kills `warpzone master` with SIGKILL again and again on its way through all phases, then lets it finish.

    python bench/master_kills.py --kills 20 --minutes 6 --stages 1-1,1-2

Prints, as JSON, the phases in which it was killed, the seconds spent and counted, and the clear rates of the agent.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from warpzone.cli.info import made


def state(folder: Path) -> dict[str, Any]:
    path = folder / "master.json"
    return dict(json.loads(path.read_bytes())) if path.exists() else {}


def phase_of(now: dict[str, Any]) -> str:
    phases = now.get("phases", {})
    return next((name for name, phase in phases.items() if phase["status"] == "running"), "start")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--stages", default="1-1,1-2")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--train-flags", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("master-kills"))
    args = parser.parse_args()
    command = [
        sys.executable, "-m", "warpzone.cli.main", "master", "--stages", args.stages, "--minutes", str(args.minutes),
        "--episodes", str(args.episodes), "--out", str(args.out), f"--train-flags={args.train_flags}", "--plain",
    ]  # fmt: skip
    chance, killed, outlived, began = random.Random(args.seed), Counter[str](), 0, time.monotonic()
    while killed.total() < args.kills:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # Evenly over the run: each sitting lasts about as long as the whole divided by the kills.
        wait_s = chance.uniform(0.5, 1.5) * 60 * args.minutes / args.kills
        before = state(args.out).get("sittings", 0)
        while process.poll() is None and state(args.out).get("sittings", 0) == before:
            time.sleep(0.05)
        until = time.monotonic() + wait_s
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
            # Short phases are met too: the first kill in each comes soon after it has begun.
            if phase_of(state(args.out)) not in {"start", *killed}:
                until = min(until, time.monotonic() + chance.uniform(0.2, 3.0))
                while process.poll() is None and time.monotonic() < until:
                    time.sleep(0.05)
        if process.poll() is not None:
            break
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        killed[phase_of(state(args.out))] += 1
        outlived += len(psutil.wait_procs(children, timeout=90)[1])
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    left = state(args.out)
    sampled = left.get("evaluations", {}).get(left.get("chosen"), {}).get("sampled", {})
    print(
        json.dumps(
            {
                **made(),
                "exit_code": code,
                "kills": dict(killed),
                "children_that_outlived_a_kill": outlived,
                "sittings": left["sittings"],
                "spent_s": round(sum(phase["spent_s"] for phase in left["phases"].values()), 1),
                "wall_s": round(time.monotonic() - began, 1),
                "status": left["status"],
                "clear_rate": {stage: row["clear_rate"] for stage, row in sampled.items()},
            },
            indent=2,
        )
    )
    return code or bool(outlived)


if __name__ == "__main__":
    sys.exit(main())
