"""Loses a node under a sweep and under a master: both end with all that they would have had.

python bench/cluster_nodes.py [--trials 8] [--stages 1-1,1-4] [--minutes 12] [--out FILE.json]

A Ray cluster of a head and two nodes runs on this machine. `warpzone sweep` trains its trials there; when two of them
learn, a node is killed with everything on it. Then a new node joins and `warpzone master` does the same with its
specialists. Exits with 1 if a trial is missing, if the master ends without an agent, or if nothing ran on a lost node.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import optuna
import psutil
import tyro
from rich.console import Console

from warpzone.cli.bench_results import write_json
from warpzone.cluster.connection import import_ray

JOBS = ("ray::_trial", "ray::Runner")
"""What Ray calls the processes of our trials and of a master's specialists."""
PATIENCE_S = 300.0
"""For trainings to begin."""


@dataclass(frozen=True)
class Config:
    trials: int = 8
    """Trials of the sweep."""
    updates: int = 60
    """Updates of each trial."""
    stages: str = "1-1,1-4"
    """Stages of the master."""
    minutes: float = 12.0
    """Minutes of the master."""
    out: Path | None = None
    """JSON file for the totals."""


def learning(runs: Path) -> list[Path]:
    """Runs below a folder that have a record of an update."""
    return [path.parent for path in runs.rglob("metrics.jsonl") if path.stat().st_size > 0]


def losing_a_node(words: list[str], raylets: Any, is_time: Callable[[], bool], log: Path) -> dict[str, Any]:
    """Run a command of warpzone and kill a node under it when it is time."""
    began = time.monotonic()
    with log.open("w") as file:
        command = [sys.executable, "-m", "warpzone.cli.main", *words]
        running = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        while not is_time():
            if running.poll() is not None or time.monotonic() - began > PATIENCE_S:
                running.kill()
                sys.exit(f"warpzone {words[0]} did not begin: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        # One with work on it: a trial, or what runs a specialist.
        node, jobs = max(((node, jobs_on(node)) for node in raylets.worker_nodes), key=lambda found: found[1])
        raylets.remove_node(node, allow_graceful=False)
        print(f"[bench] a node with {jobs} jobs is gone after {time.monotonic() - began:.0f} s", flush=True)
        code = running.wait()
    return {"exit_code": code, "seconds": time.monotonic() - began, "jobs_lost": jobs}


def jobs_on(node: Any) -> int:
    """Trials and specialists that run on a node."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return sum(child.name().startswith(JOBS) for child in raylet.children(recursive=True))


def sweep(config: Config, raylets: Any, folder: Path) -> dict[str, Any]:
    runs = folder / "sweep"
    words = (
        f"sweep --name s --trials {config.trials} --no-plots --runs-dir {runs} --cluster {raylets.address} "
    )
    words += (
        f"-- --preset cpu --stages 1-1 --num-envs 16 --total-updates {config.updates} --until-clear-rate 0 "
    )
    words += "--log-interval 1 --no-record-video --no-enable-tensorboard"
    ended = losing_a_node(words.split(), raylets, lambda: len(learning(runs)) >= 2, folder / "sweep.log")
    study = optuna.load_study(study_name="s", storage=f"sqlite:///{runs / 's.db'}")
    states = Counter(trial.state.name for trial in study.trials)
    # A trial that is begun again has a folder beside its first one.
    again = len(list(runs.glob("*-trial-*"))) - config.trials
    return {**ended, "trials": dict(states), "begun_again": again}


def master(config: Config, raylets: Any, folder: Path) -> dict[str, Any]:
    out = folder / "master"
    words = f"master --stages {config.stages} --minutes {config.minutes:g} --parallel 2 --plain --out {out} "
    words += f"--cluster {raylets.address}"

    def both_learn() -> bool:
        return len([run for run in learning(out) if run.name.startswith("specialist-")]) >= 2

    ended = losing_a_node(words.split(), raylets, both_learn, folder / "master.log")
    state = json.loads((out / "master.json").read_text())
    chosen = state["evaluations"].get(state.get("chosen"), {})
    return {
        **ended, "status": state["status"],
        "evaluation": {
            mode: {stage: {key: row[key] for key in ("episodes", "clears", "clear_rate", "low", "high")}
                   for stage, row in rows.items()}
            for mode, rows in chosen.items()
        },
    }  # fmt: skip


def main(config: Config) -> int:
    console = Console()
    import_ray()
    from ray.cluster_utils import Cluster as Raylets

    raylets = Raylets(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        with tempfile.TemporaryDirectory() as name:
            for _ in range(2):
                raylets.add_node(num_cpus=1, object_store_memory=100 << 20)
            results = {"sweep": sweep(config, raylets, Path(name))}
            console.print(results)
            raylets.add_node(num_cpus=1, object_store_memory=100 << 20)
            raylets.wait_for_nodes(timeout=60)  # until the head has noticed the loss
            results["master"] = master(config, raylets, Path(name))
            console.print(results["master"])
    finally:
        raylets.shutdown()
    write_json(
        config.out, "cluster_nodes.json", {"config": {**asdict(config), "out": None}, **results}, console
    )
    kept = sum(results["sweep"]["trials"].get(state, 0) for state in ("COMPLETE", "PRUNED"))
    survived = (
        kept == config.trials and results["sweep"]["exit_code"] == 0 and results["master"]["status"] == "done"
    )
    return 0 if survived and all(ended["jobs_lost"] for ended in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config)))
