"""Whole trainings with environments on hosts of this machine against whole trainings in one process.

python bench/cluster_train.py [--hosts 2] [--envs 2048] [--groups 2] [--threads 0] [--seconds 20] [--rounds 3]
    [--sides hosts] [--out FILE.json]

Every round trains once in process and once with hosts, each for so many seconds; the first eight count as start-up.
How long hosts are idle, and what their steps and replies take, is shown beside the ratio.
"""

from __future__ import annotations

import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

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
    groups: int = 2
    """Groups of environments that take turns, with hosts."""
    threads: int = 0
    """Emulation threads of each host (0 = what a local cluster gives them)."""
    sides: Literal["both", "hosts"] = "both"
    """Train also in process, or only with hosts, to try a setting."""
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
        size += ["--envs-per-host", str(config.envs // config.hosts), "--env-groups", str(config.groups)]
        size += ["--env-threads", str(config.threads)] if config.threads else []
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


def of_hosts(config: Config, records: list[dict[str, Any]]) -> dict[str, float]:
    """What the records of trainings with hosts say of a host, as medians."""
    in_step = config.envs / config.hosts / config.groups
    hosts = [host for one in records for host in one["hosts"] if host["decisions_per_s"]]
    found = {name: statistics.median(host[name] for host in hosts) for name in ("step_ms", "round_trip_ms")}
    # A host emulates its groups one after the other.
    busy = [host["decisions_per_s"] / in_step * host["step_ms"] / 1e3 for host in hosts]
    times = {name: statistics.median(one[name] for one in records) for name in ("rollout_time", "learn_time")}
    sent = statistics.median(one["bytes_per_decision"] for one in records if one["bytes_per_decision"])
    return {**found, "idle": 1 - statistics.median(busy), **times, "bytes_per_decision": sent}


def main(config: Config) -> None:
    console = Console()
    seen: dict[str, list[dict[str, Any]]] = {"process": [], "hosts": []}
    if config.sides == "hosts":
        del seen["process"]
    sides = {name: lambda name=name: trained(config, name == "hosts", seen[name]) for name in seen}
    rates = in_turn(sides, config.rounds, console)
    per_s = {name: statistics.median(found) for name, found in rates.items()}
    hosts = of_hosts(config, seen["hosts"])
    results = {
        "config": {**asdict(config), "out": None}, "commands": {
            name: f"warpzone {shlex.join(command(config, name == 'hosts'))}" for name in seen
        },
        "rates": rates, **hosts, "restarts": max(one["host_restarts"] for one in seen["hosts"]),
    }  # fmt: skip
    shown = {
        "hosts": f"{config.hosts}, {config.groups} groups",
        **{f"{name}/s": f"{n:,.0f}" for name, n in per_s.items()},
    }
    if "process" in rates:
        results["times"] = ratio(rates["hosts"], rates["process"])
        results["process"] = {
            name: statistics.median(one[name] for one in seen["process"]) for name in ("rollout_time", "learn_time")
        }  # fmt: skip
        shown["times"] = spread(results["times"])
    shown |= {"bytes": f"{hosts['bytes_per_decision']:.0f}", "idle": f"{hosts['idle']:.0%}"}
    console.print(table("training", [*shown], [[*shown.values()]]))
    console.print(
        f"A host's step takes {hosts['step_ms']:.1f} ms, its round trip {hosts['round_trip_ms']:.1f} ms; a rollout "
        f"{hosts['rollout_time']:.3f} s, learning from it {hosts['learn_time']:.3f} s."
    )
    write_json(config.out, "cluster_train.json", results, console)


if __name__ == "__main__":
    main(tyro.cli(Config))
