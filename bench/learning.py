"""How long it takes to learn a stage with the defaults of this machine, stage by stage and seed by seed.

    python bench/learning.py --stages 1-1 --seeds 0 1 2 --out docs/data/learning-cpu.json
    python bench/learning.py --stages all --minutes 15 --out docs/data/learning-cpu.json -- --gamma 0.97

Everything after `--` is passed to `warpzone train`. A run ends when 256 fresh episodes show the target clear rate with
95 % confidence, or when its time is up; then its latest policy plays 256 fresh episodes. Each result is written at
once, so that the same command continues where it stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from warpzone.cli.info import made
from warpzone.envs.stages import parse_stages
from warpzone.watch.metrics import read_metrics

WARPZONE = [sys.executable, "-m", "warpzone.cli.main"]
EPISODES = 256
CURVE_S = 5.0


@dataclass(frozen=True)
class Config:
    out: Path
    """JSON file for the results."""
    stages: tuple[str, ...] = ("1-1",)
    """Stages, worlds or 'all', trained one after another."""
    seeds: tuple[int, ...] = (0,)
    """Seeds for each stage."""
    minutes: float = 15.0
    """Maximum training time per run, in minutes."""
    target: float = 0.9
    """Clear rate that a run has to show."""


def one(config: Config, stage: str, seed: int, flags: list[str]) -> dict[str, Any]:
    """Train a stage with a seed and play fresh episodes."""
    with tempfile.TemporaryDirectory() as folder:
        place = ["--runs-dir", folder, "--run-name", "run"]
        limits = ["--until-clear-rate", str(config.target), "--time-limit", str(config.minutes)]
        quiet = ["--plain", "--no-record-video", "--no-enable-tensorboard"]
        _run(["train", *flags, *place, *limits, *quiet, "--stages", stage, "--seed", str(seed)])
        run = Path(folder) / "run"
        outcome = json.loads((run / "outcome.json").read_text())
        fresh = outcome["confirmed"].get(stage)
        reached = fresh is not None and fresh["low"] >= config.target
        if not reached:
            _run(
                ["eval", "--checkpoint", str(run / "checkpoints" / "latest.pt"), "--episodes", str(EPISODES),
                 "--mode", "sampled", "--out", f"{folder}/fresh.json"]
            )  # fmt: skip
            fresh = json.loads(Path(folder, "fresh.json").read_text())["results"]["sampled"][0]
        curve, due = [], 0.0
        for record in read_metrics(run):
            if record["elapsed_s"] >= due:
                due = record["elapsed_s"] + CURVE_S
                rate = record["clear_rate_mean"]
                curve.append([round(record["elapsed_s"], 1), record["global_step"], rate])
    return {
        "stage": stage,
        "seed": seed,
        "flags": flags,
        "reached": reached,
        "seconds": outcome["elapsed_s"],
        "decisions": outcome["global_step"],
        **{key: fresh[key] for key in ("episodes", "clears", "clear_rate", "low", "high", "ends")},
        "curve": curve,
    }


def _run(command: list[str]) -> None:
    done = subprocess.run([*WARPZONE, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"warpzone {command[0]} failed: {done.stderr.strip()}")


def main(config: Config, flags: list[str]) -> None:
    report: dict[str, Any] = {"target": config.target, "minutes": config.minutes, "runs": []}
    if config.out.exists():
        report = json.loads(config.out.read_text())
    done = {(run["stage"], run["seed"], tuple(run["flags"])) for run in report["runs"]}
    for stage in parse_stages(list(config.stages)):
        for seed in config.seeds:
            if (stage, seed, tuple(flags)) in done:
                continue
            run = one(config, stage, seed, flags)
            report["runs"].append({**run, **made()})
            report["runs"].sort(key=lambda run: (run["stage"], run["seed"]))
            config.out.parent.mkdir(parents=True, exist_ok=True)
            config.out.write_text(json.dumps(report, indent=1) + "\n")
            print(
                f"{stage} seed {seed}: {run['clear_rate']:.1%} ({run['low']:.1%} to {run['high']:.1%}) "
                f"after {run['seconds']:.0f} s, {run['decisions'] / 1e6:.2f} M decisions",
                flush=True,
            )


if __name__ == "__main__":
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    main(tyro.cli(Config, args=words[:at], description=__doc__), words[at + 1 :])
