"""bench/master_runs.py: what the specialists of a master have learned, as a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from warpzone.master.opening import open_state
from warpzone.master.plan import MasterConfig, make_plan

SCRIPT = Path(__file__).parents[2] / "bench" / "master_runs.py"


def test_curves_and_decisions_of_all_together_are_read_from_the_folder(tmp_path: Path) -> None:
    config = MasterConfig(stages="1-1,1-2", minutes=10, preset="cpu", out=tmp_path / "master")
    state = open_state(config, make_plan(config, cores=4), "abc")
    state.machine = {"cpu": "a processor", "gpu": "none"}
    state.evaluations = {"student": {"sampled": {"1-1": {"clear_rate": 0.75, "episodes": 4}}}}
    rates = {"1-1": [0.2, 0.9, 0.6], "1-2": [0.0, 0.0, 0.1]}
    for stage, cleared in rates.items():
        run = config.out / f"specialist-{stage}"
        run.mkdir(parents=True)
        records = [
            {
                "timestamp": 1000.0 + 10 * i, "update": i, "global_step": 5000 * i, "elapsed_s": 10.0 * i,
                "clear_rate": {stage: rate}, "clear_rate_noisy": None, "learning_rate": 0.001, "entropy": 1.0,
            }
            for i, rate in enumerate(cleared, 1)
        ]  # fmt: skip
        (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    state.save(config.out)
    out = tmp_path / "runs.json"
    subprocess.run([sys.executable, SCRIPT, config.out, "--out", out], check=True, capture_output=True)
    found = json.loads(out.read_text())
    best = {name: one["best_100_episodes"]["decisions"] for name, one in found["specialists"].items()}
    assert best == {"1-1": 10_000, "1-2": 15_000}
    assert [point[1:3] for point in found["specialists"]["1-1"]["curve"]][:2] == [
        [5000, [0.2]],
        [10_000, [0.9]],
    ]
    # Each made 10,000 decisions within the first half-minute.
    assert found["together"] == [[0.0, 2, round(20_000 / 30)]]
    assert found["hardware"] == "a processor, none"
    assert found["evaluations"] == {"student": {"sampled": {"1-1": 0.75}}}


def test_a_folder_without_a_master_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "--out", tmp_path / "x.json"], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 2
    assert "holds no master's state" in done.stderr
