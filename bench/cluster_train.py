"""Whole trainings with environments on hosts of this machine against whole trainings in one process.

python bench/cluster_train.py [--hosts 2] [--envs 2048] [--seconds 20] [--rounds 3] [--out FILE.json]

Every round trains once in process and once with hosts, each for so many seconds; the first eight count as start-up.
"""

from __future__ import annotations

import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from warpzone.cli.bench_results import in_turn, ratio, spread, table, write_json
from warpzone.watch.metrics import read_metrics

START_S = 8.0
"""Seconds of training that are not counted: graphs are captured, and pools fill."""


@dataclass(frozen=True)
class Config:
    hosts: int = 2
    """Hosts, all on this machine."""
    envs: int = 2048
    """Environments in all."""
    seconds: float = 20.0
    """Seconds of each training."""
    rounds: int = 3
    """Trainings of each side."""
    flags: str = "--preset gpu --minibatch-size 8192"
    """Further flags of `warpzone train`, for both sides."""
    out: Path | None = None
    """JSON file for the results."""


def command(config: Config, on_hosts: bool) -> list[str]:
    """The flags of one training."""
    size = ["--num-envs", str(config.envs)]
    if on_hosts:
        size = ["--cluster", "local", "--env-hosts", str(config.hosts)]
        size += ["--envs-per-host", str(config.envs // config.hosts)]
    return [
        "train", "--stages", "1-1", *size, *shlex.split(config.flags), "--trails", "", "--until-clear-rate", "0",
        "--time-limit", f"{config.seconds / 60:g}", "--no-record-video", "--no-enable-tensorboard", "--plain",
        "--log-interval", "1",
    ]  # fmt: skip


def trained(config: Config, on_hosts: bool, seen: list[dict[str, Any]]) -> float:
    """Decisions per second of one training after its start; `seen` gets its records."""
    with tempfile.TemporaryDirectory() as runs:
        words = [*command(config, on_hosts), "--runs-dir", runs, "--run-name", "speed"]
        ended = subprocess.run(
            [sys.executable, "-m", "warpzone.cli.main", *words], capture_output=True, text=True, check=False
        )
        if ended.returncode:
            sys.exit(f"warpzone {shlex.join(words)} failed:\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}")
        records = [one for one in read_metrics(Path(runs) / "speed") if one["elapsed_s"] >= START_S]
    if len(records) < 2:
        sys.exit(f"Give more --seconds: {len(records)} updates ended after the first {START_S:g} s.")
    seen += records
    first, last = records[0], records[-1]
    return float((last["global_step"] - first["global_step"]) / (last["elapsed_s"] - first["elapsed_s"]))


def main(config: Config) -> None:
    console = Console()
    seen: dict[str, list[dict[str, Any]]] = {"process": [], "hosts": []}
    sides = {name: lambda name=name: trained(config, name == "hosts", seen[name]) for name in seen}
    rates = in_turn(sides, config.rounds, console)
    times = ratio(rates["hosts"], rates["process"])
    sent = statistics.median(one["bytes_per_decision"] for one in seen["hosts"] if one["bytes_per_decision"])
    per_s = {name: statistics.median(found) for name, found in rates.items()}
    row = [str(config.hosts), *(f"{found:,.0f}" for found in per_s.values()), spread(times), f"{sent:.0f}"]
    console.print(table("training", ["hosts", "process/s", "hosts/s", "times", "bytes"], [row]))
    results = {
        "config": {**asdict(config), "out": None}, "commands": {
            name: f"warpzone {shlex.join(command(config, name == 'hosts'))}" for name in seen
        },
        "rates": rates, "times": times, "bytes_per_decision": sent,
        **{name: statistics.median(host[name] for one in seen["hosts"] for host in one["hosts"])
           for name in ("step_ms", "round_trip_ms")},
        "restarts": max(one["host_restarts"] for one in seen["hosts"]),
    }  # fmt: skip
    write_json(config.out, "cluster_train.json", results, console)


if __name__ == "__main__":
    main(tyro.cli(Config))
