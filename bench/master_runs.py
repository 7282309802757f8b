"""Reads the folder of a `warpzone master` and writes what it has learned so far: specialists with curves, evaluations.

    python bench/master_runs.py FOLDER --out docs/data/NAME.json

`together` has, for every half a minute, how many specialists trained and their decisions per second in all.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from warpzone.cli.info import made
from warpzone.master.state import State, read_state, run_name
from warpzone.watch.metrics import read_metrics

POINTS = 40
BIN_S = 30.0
CURVE = "seconds, decisions, clear rate of each stage, clear rate with noise, learning rate, entropy"
Record = dict[str, Any]


def specialist(state: State, name: str, records: list[Record]) -> Record:
    one = state.specialists[name]
    means = [sum(rates.values()) / len(rates) if (rates := r.get("clear_rate")) else 0.0 for r in records]
    best = records[max(range(len(records)), key=means.__getitem__)] if records else {}
    thinned = records[:: max(1, len(records) // POINTS)] + records[-1:]
    return {
        "stages": one.stages, "status": one.status, "seconds": round(one.spent_s, 1), "decisions": one.decisions,
        "clear_rate": one.clear_rate,
        "best_100_episodes": {"decisions": best.get("global_step"), "clear_rate": best.get("clear_rate")},
        "curve": [point(record) for record in thinned],
    }  # fmt: skip


def rates(modes: Record) -> Record:
    """Mode -> stage -> share of the episodes cleared."""
    return {mode: {stage: row["clear_rate"] for stage, row in rows.items()} for mode, rows in modes.items()}


def point(record: Record) -> list[Any]:
    rates = [round(rate, 3) for rate in (record.get("clear_rate") or {}).values()]
    rest = [record.get(name) for name in ("clear_rate_noisy", "learning_rate", "entropy")]
    return [
        round(record["elapsed_s"], 1), record["global_step"], rates,
        *(round(x, 6) if x is not None else None for x in rest),
    ]  # fmt: skip


def together(runs: list[list[Record]]) -> list[list[float]]:
    """[seconds since the first record, specialists, decisions per second]; times without any are left out."""
    decisions, trained = defaultdict[int, float](float), defaultdict[int, set[int]](set)
    began = min(records[0]["timestamp"] for records in runs)
    for number, records in enumerate(runs):
        for before, after in itertools.pairwise(records):
            if after["timestamp"] - before["timestamp"] < BIN_S:
                at = int((after["timestamp"] - began) // BIN_S)
                decisions[at] += after["global_step"] - before["global_step"]
                trained[at].add(number)
    return [[at * BIN_S, len(trained[at]), round(decisions[at] / BIN_S)] for at in sorted(decisions)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    state = read_state(given.folder)
    if state is None:
        parser.error(f"{given.folder} holds no master's state")
    records = {name: read_metrics(given.folder / run_name(name)) for name in state.specialists}
    machine = state.machine
    results = {
        **made(), "of": f"warpzone master --stages {state.settings['stages']} --minutes {state.settings['minutes']:g}",
        "hardware": f"{machine.get('cpu')}, {machine.get('gpu')}", "cuda_mps": machine.get("cuda_mps"),
        "ended_unix_s": state.updated_unix_s, "seed": state.settings["seed"], "sittings": state.sittings,
        "phases": {name: round(phase.spent_s, 1) for name, phase in state.phases.items()}, "curve": CURVE,
        "specialists": {name: specialist(state, name, found) for name, found in records.items()},
        "evaluations": {run: rates(modes) for run, modes in state.evaluations.items()}, "chosen": state.chosen,
        "together": together([found for found in records.values() if found]),
    }  # fmt: skip
    given.out.write_text(json.dumps(results) + "\n")
    print(json.dumps({name: one.status for name, one in state.specialists.items()}))


if __name__ == "__main__":
    main()
