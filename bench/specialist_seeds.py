"""Several seeds of the specialist that `warpzone master` trains for a stage, at once on one machine, from scratch.

    python bench/specialist_seeds.py --stage 8-4 --runs 0 1 2 "1:--go-back 0" --minutes 8 --out FOLDER

A run is a seed, and flags that differ from master's own after a colon. Each follows the trail that `warpzone explore`
finds with its seed; `--trails FOLDER` has some already, as FOLDER/SEED. When the minutes are over, runs are told to
stop, and their best policies play fresh episodes. FOLDER then has result.json, with curves, the metrics and episodes
of each run and its best weights, rounded to half precision, but no checkpoint to resume from.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import torch
import tyro

from sittings import KEEP_WEIGHTS
from warpzone.cli.info import made
from warpzone.envs.config import cores
from warpzone.master import recipes
from warpzone.master.children import PATIENT
from warpzone.master.gpu_sharing import shared_gpu
from warpzone.watch.metrics import read_metrics

WARPZONE = [sys.executable, "-m", "warpzone.cli.main"]
EPISODES = 100
POINTS = 60
CURVE = "seconds, decisions, clear rate, clear rate along the trail, learning rate, entropy"


@dataclass(frozen=True)
class Config:
    out: Path
    """Folder for the results."""
    stage: str = "8-4"
    """The stage."""
    runs: tuple[str, ...] = ("0", "1")
    """Seeds, each with its own flags after a colon."""
    minutes: float = 8.0
    """Minutes of training."""
    trails: Path | None = None
    """Folder with trails, in a folder named by each seed."""
    explore_minutes: float = 10.0
    """Maximum minutes to search for a trail."""
    preset: Literal["cpu", "gpu"] = "gpu"
    """Preset whose recipe is used."""


@dataclass(frozen=True)
class Run:
    name: str
    seed: str
    flags: list[str]


def read_runs(texts: Sequence[str]) -> list[Run]:
    """'1:--go-back 0' as a seed and its flags; names are unique."""
    runs = []
    for number, text in enumerate(texts):
        seed, _, flags = text.partition(":")
        if not seed.isdecimal():
            sys.exit(f"{text!r} does not begin with a seed: write 1 or '1:--go-back 0'.")
        runs.append(Run(f"{number}-seed-{seed}", seed, shlex.split(flags)))
    return runs


def together(
    commands: Mapping[str, list[str]],
    folder: Path,
    variables: Mapping[str, str],
    seconds: float | None = None,
) -> None:
    """Run commands at once, each with a log, and tell how they go on; stop them after so many seconds."""
    began = time.monotonic()
    children = {}
    for name, command in commands.items():
        with (folder / f"{name}.log").open("w") as log:
            children[name] = subprocess.Popen(
                [*WARPZONE, *command], stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **variables}
            )
    told, stopped = began, False
    while any(child.poll() is None for child in children.values()):
        time.sleep(0.2)
        now = time.monotonic()
        if now - told > 20:
            told = now
            print(
                f"{now - began:.0f} s: {', '.join(last_line(folder / f'{name}.log') for name in children)}",
                flush=True,
            )
        if seconds is not None and now - began > seconds and not stopped:
            stopped = True
            for child in children.values():
                child.terminate()
    for name, child in children.items():
        if child.returncode and not stopped:
            sys.exit(f"{name} failed: {last_line(folder / f'{name}.log')}")


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() or [""]
    return lines[-1].strip()[:110]


def train_words(config: Config, run: Run, trails: Path, runs: Path, threads: int) -> list[str]:
    stage, preset = config.stage, config.preset
    return [
        "train", "--run-name", run.name, "--runs-dir", str(runs), "--seed", run.seed,
        *recipes.words(
            {"preset": preset, "stages": stage}, recipes.EVERY_RUN[preset], {"env-threads": threads},
            {} if preset == "gpu" else {"torch-threads": threads}, recipes.specialist(preset, [stage]),
            {"trails": trails / run.seed},
        ),
        *run.flags,
    ]  # fmt: skip


def curve(records: Sequence[Mapping[str, Any]], stage: str) -> list[list[float | None]]:
    picked = [*records[:: max(1, len(records) // POINTS)], *records[-1:]]
    return [
        [
            round(one["elapsed_s"], 1), one["global_step"], (one["clear_rate"] or {}).get(stage),
            (one["trail_cleared"] or {}).get(stage), float(f"{one['learning_rate']:.3g}"), round(one["entropy"], 3),
        ]
        for one in picked
    ]  # fmt: skip


def shown(words: Sequence[str]) -> str:
    """A command as text, without where this machine keeps its folders."""
    text = " ".join(shlex.quote(word) for word in words)
    return re.sub(r"(--\S+) \S*/(\S+)", r"\1 \2", text)


def first_cleared(records: Sequence[Mapping[str, Any]], stage: str) -> int | None:
    """Decisions up to the first record with an episode that cleared it."""
    return next((one["global_step"] for one in records if (one["clear_rate"] or {}).get(stage)), None)


def report(
    run: Run, words: list[str], config: Config, trails: Path, folder: Path, log: Path
) -> dict[str, Any]:
    records, text = read_metrics(folder), log.read_text(errors="replace")
    fresh = (
        json.loads((folder / "fresh.json").read_text())
        if (folder / "fresh.json").exists()
        else {"results": {}}
    )
    trail = json.loads((trails / run.seed / f"{config.stage}.json").read_text())
    return {
        "name": run.name, "seed": int(run.seed), "command": f"warpzone {shown(words)}",
        "trail": {"command": f"warpzone explore --stages {config.stage} --seed {run.seed}",
                  **{key: trail[key] for key in ("decisions", "tried", "seconds")}},
        "seconds": records[-1]["elapsed_s"], "decisions": records[-1]["global_step"],
        "first_cleared": first_cleared(records, config.stage),
        "returns_to_best": text.count("back to the best weights"),
        "evaluation": {mode: rows[0] for mode, rows in fresh["results"].items()},
        "curve": curve(records, config.stage),
    }  # fmt: skip


def main(config: Config) -> None:
    runs, out = read_runs(config.runs), config.out
    out.mkdir(parents=True, exist_ok=True)
    trails, folder = config.trails or out / "trails", out / "runs"
    missing = {run.seed for run in runs if not (trails / run.seed / f"{config.stage}.json").exists()}
    together(
        {
            f"trail-{seed}": ["explore", "--stages", config.stage, "--seed", seed, "--threads", "1", "--minutes",
                              str(config.explore_minutes), "--out", str(trails / seed)]
            for seed in sorted(missing)
        },
        out, {},
    )  # fmt: skip
    threads = max(1, cores() // len(runs))
    words = {run.name: train_words(config, run, trails, folder, threads) for run in runs}
    sharing: Any = SimpleNamespace(cluster=""), SimpleNamespace(preset=config.preset, parallel=len(runs))
    with shared_gpu(*sharing, print) as variables:
        together(words, out, {**PATIENT, **variables}, 60 * config.minutes)
        cuda = ["--device", "cuda"] if config.preset == "gpu" and torch.cuda.is_available() else []
        together(
            {
                f"{run.name}-fresh": ["eval", "--checkpoint", str(best), "--mode", "all", "--episodes", str(EPISODES),
                                      "--threads", str(threads), *cuda, "--out", str(folder / run.name / "fresh.json")]
                for run in runs
                if (best := folder / run.name / "checkpoints" / "best.pt").exists()
            },
            out, {**PATIENT, **variables},
        )  # fmt: skip
    subprocess.run([sys.executable, "-c", KEEP_WEIGHTS, str(folder)], check=True)
    results = []
    for run in runs:
        results.append(
            report(run, words[run.name], config, trails, folder / run.name, out / f"{run.name}.log")
        )
        checkpoints = folder / run.name / "checkpoints"
        for part in sorted(checkpoints.glob("best.*")):  # the file with its sidecar
            shutil.move(part, out / f"{run.name}{part.suffix}")
        shutil.rmtree(checkpoints, ignore_errors=True)
        fresh = {mode: f"{row['clear_rate']:.0%}" for mode, row in results[-1]["evaluation"].items()}
        print(f"{run.name}: {results[-1]['decisions'] / 1e6:.1f} M decisions, {fresh or 'never cleared'}")
    made_by = made()
    what = {
        **made_by, "command": shown(shlex.split(made_by["command"])), "curve": CURVE, "at_once": len(runs),
        "runs": results,
    }  # fmt: skip
    text = json.dumps(what, indent=1)
    text = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)
    (out / "result.json").write_text(text + "\n")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
