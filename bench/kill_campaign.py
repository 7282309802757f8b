"""Kills runs at random moments, on good and failing disks, and checks what each leaves behind: `python
bench/kill_campaign.py`.

Kills real `warpzone train` processes, or with `--target stand-in` a small program that saves far more often.
Prints one line per kind of kill; exits with 1 if any kill was unsound.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.checkpoints.kill_trial import FAULTS, kill_once
from tests.checkpoints.train_kill_trial import FLAGS, KINDS, kill_training, strayed

from warpzone.cli.info import made


@dataclass(frozen=True)
class Config:
    target: Literal["train", "stand-in"] = "train"
    """What is killed."""
    kills: int = 200
    """Total kills, spread over the kinds."""
    kills_per_run: int = 10
    """Kills per run, each resuming from what the previous one left."""
    seed: int = 0
    out: Path | None = None
    """JSON file for the totals."""


@dataclass
class Tally:
    """Totals for one kind of kill."""

    kills: int = 0
    unsound: int = 0
    while_saving: int = 0
    failed_saves: int = 0
    most_lost: int = 0


def kill_trainings(config: Config, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Kill `warpzone train`; returns the problems and what is worth keeping."""
    tallies, problems = {kind: Tally() for kind in KINDS}, []
    furthest = 1
    for kill in range(config.kills):
        kind = KINDS[kill % len(KINDS)]
        name = f"run_{kill // config.kills_per_run}"
        outcome = kill_training(folder, name, config.seed + kill, kind)
        furthest = max(furthest, outcome.updates)
        tally = tallies[kind]
        tally.kills += 1
        tally.while_saving += outcome.was_saving
        tally.failed_saves += outcome.has_failed_save
        tally.most_lost = max(tally.most_lost, outcome.lost)
        if outcome.problem:
            tally.unsound += 1
            problems.append(f"kill {kill} ({kind}): {outcome.problem}")
        print(f"kill {kill}: {name}, {kind}, update {outcome.updates} {outcome.problem}", file=sys.stderr)
    print("| kind | kills | during a save | saves that failed | most updates lost | unsound |")
    print("|---|---|---|---|---|---|")
    for kind, t in tallies.items():
        print(f"| {kind} | {t.kills} | {t.while_saving} | {t.failed_saves} | {t.most_lost} | {t.unsound} |")
    strayed_runs, runs = _strayed_runs(folder, furthest)
    kinds = {kind: asdict(tally) for kind, tally in tallies.items()}
    return problems + strayed_runs, {"kinds": kinds, "runs": runs, "bit_exact_runs": runs - len(strayed_runs)}


def _strayed_runs(folder: Path, furthest: int) -> tuple[list[str], int]:
    """Runs that differ in any bit from the run that was never killed, and the number of all runs."""
    runs = sorted(folder.glob("run_*/"))
    flags = [*FLAGS, "--runs-dir", str(folder), "--run-name", "whole", "--total-updates", str(furthest)]
    command = [sys.executable, "-m", "warpzone.cli.main", "train", *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    problems = [
        f"{run.name} differs at update {at[0]}" for run in runs if (at := strayed(run, folder / "whole"))
    ]
    print(f"{len(runs) - len(problems)} of {len(runs)} runs are bit-exact with a run that was never killed")
    return problems, len(runs)


def kill_stand_ins(config: Config, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Kill the small program; returns the problems and what is worth keeping."""
    kills, lost, problems = Counter[str](), Counter[str](), []
    for kill in range(config.kills):
        fault = FAULTS[kill % len(FAULTS)]
        run = folder / f"{fault}_{kill // (len(FAULTS) * config.kills_per_run)}"
        outcome = kill_once(run, config.seed + kill, fault)
        kills[fault] += 1
        if outcome.problem:
            lost[fault] += 1
            problems.append(f"kill {kill} ({fault}): {outcome.problem}")
    print("| fault | kills | unsound |\n|---|---|---|")
    for fault in FAULTS:
        print(f"| {fault} | {kills[fault]} | {lost[fault]} |")
    return problems, {"kinds": {fault: {"kills": kills[fault], "unsound": lost[fault]} for fault in FAULTS}}


def main(config: Config) -> int:
    started = time.monotonic()
    # If the campaign itself is stopped, no training process may be left running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        campaign = kill_trainings if config.target == "train" else kill_stand_ins
        problems, kept = campaign(config, Path(folder))
    seconds = time.monotonic() - started
    print(f"{config.kills} kills in {seconds:.0f} s, {len(problems)} problems")
    if config.out is not None:
        document = {**made(), "kills": config.kills, "seconds": seconds, "problems": problems, **kept}
        config.out.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config)))
