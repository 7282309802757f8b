"""Kills runs at random moments, on good and failing disks, and checks what each leaves: `python
bench/kill_campaign.py`.

Prints one line per kind of fault; exits with 1 if any kill left something unsound.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tyro

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.run.kill_trial import FAULTS, kill_once


@dataclass(frozen=True)
class Config:
    kills: int = 200
    """Kills in all, spread over the kinds of fault."""
    kills_per_run: int = 10
    """Kills of one and the same run, each resuming from what the one before left."""
    seed: int = 0


def main(config: Config) -> int:
    started = time.monotonic()
    kills, lost, problems = Counter[str](), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        for kill in range(config.kills):
            fault = FAULTS[kill % len(FAULTS)]
            run = Path(folder) / f"{fault}_{kill // (len(FAULTS) * config.kills_per_run)}"
            outcome = kill_once(run, config.seed + kill, fault)
            kills[fault] += 1
            if outcome.problem:
                lost[fault] += 1
                problems.append(f"kill {kill} ({fault}): {outcome.problem}")
    print("| fault | kills | unsound |\n|---|---|---|")
    for fault in FAULTS:
        print(f"| {fault} | {kills[fault]} | {lost[fault]} |")
    print(f"{config.kills} kills in {time.monotonic() - started:.0f} s, {len(problems)} unsound")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config)))
