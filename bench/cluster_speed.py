"""Environments on hosts of this machine against environments in process, and what a model of it predicts.

python bench/cluster_speed.py [--envs 64 256] [--hosts 2] [--seconds 3] [--rounds 5] [--out FILE.json]

Both sides step two groups of environments in turn with random actions, without a policy: the hardest case for hosts,
as nothing hides the calls. The sides alternate, so that whatever else the machine does hits both.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from rich.console import Console

from warpzone.cli.bench_results import in_turn, rate, ratio, spread, table, write_json
from warpzone.cli.train import settings
from warpzone.cluster.build import host_environments
from warpzone.cluster.connection import Cluster, connected
from warpzone.cluster.model import Costs, predict
from warpzone.engine import Packer
from warpzone.run.build import build_envs, cores

CODEC_S = 0.5
"""Seconds for which compression and decompression are timed."""


@dataclass(frozen=True)
class Config:
    envs: tuple[int, ...] = (64, 256)
    """Environments of each host."""
    hosts: int = 2
    """Hosts, all on this machine."""
    seconds: float = 3.0
    """Seconds of each measurement."""
    rounds: int = 5
    """Measurements of each side."""
    out: Path | None = None
    """JSON file for the results."""


def stepping(groups: Sequence[Any], seed: int = 0) -> Callable[[], int]:
    """Steps both groups once, each while the other is under way; gives the decisions made."""
    random = np.random.default_rng(seed)
    for envs in groups:
        envs.reset()
        envs.send(random.integers(0, 7, envs.num_envs))

    def step() -> int:
        for envs in groups:
            envs.recv()
            envs.send(random.integers(0, 7, envs.num_envs))
        return sum(envs.num_envs for envs in groups)

    return step


def codec_us(observations: np.ndarray) -> dict[str, float]:
    """What the compression of the newest frame of observations costs on one core, and its decompression."""
    frames = np.ascontiguousarray(observations[:, -1:])
    packer, out = Packer(1, frames[0].size, frames.shape[-1]), np.empty_like(frames)
    packed = packer.pack(frames)

    def pack() -> int:
        packer.pack(frames)
        return len(frames)

    def unpack() -> int:
        packer.unpack(packed, out)
        return len(frames)

    return {"pack_us": 1e6 / rate(pack, CODEC_S), "unpack_us": 1e6 / rate(unpack, CODEC_S)}


def compare(cluster: Cluster, config: Config, each: int, console: Console) -> dict[str, Any]:
    """Both sides with so many environments on each host."""
    flags = ["--preset", "gpu", "--device", "cpu", "--cluster", "local", "--env-hosts", str(config.hosts)]
    run = settings([*flags, "--envs-per-host", str(each), "--minibatch-size", "64", "--trails", ""], {})
    device = torch.device("cpu")
    here = build_envs(run, device, lambda line: None)
    there = host_environments(cluster, run, device, lambda line: None)
    with closing(there[0]):
        sides = {"process": stepping(here), "hosts": stepping(there)}
        rates = in_turn(
            {n: lambda s=s: rate(s, config.seconds) for n, s in sides.items()}, config.rounds, console
        )
        hosts = there[0].metrics()
    codec = codec_us(here[0].recv()[0])
    for envs in here:
        envs.close()
    process = statistics.median(rates["process"])
    costs = Costs(
        decision_us=1e6 * cores() / process, act_us=0.0, bytes_per_decision=hosts["bytes_per_decision"],
        **codec,
    )  # fmt: skip
    measured = statistics.median(rates["hosts"])
    model = predict(
        costs,
        cores=cores(),
        hosts=config.hosts,
        envs=each * config.hosts,
        gbit_per_s=float("inf"),
        shared=True,
    )
    return {
        "envs_per_host": each, "process_per_s": process, "hosts_per_s": measured,
        "times": ratio(rates["hosts"], rates["process"]), "bytes_per_decision": hosts["bytes_per_decision"],
        "predicted_per_s": model.decisions_per_s, "error": model.decisions_per_s / measured - 1,
        "costs": asdict(costs),
    }  # fmt: skip


def main(config: Config) -> None:
    console = Console()
    with connected("local", local_cpus=max(cores(), config.hosts)) as cluster:
        found = [compare(cluster, config, each, console) for each in config.envs]
    rows = [
        [
            *(str(one["envs_per_host"]), f"{one['process_per_s']:,.0f}", f"{one['hosts_per_s']:,.0f}"),
            *(spread(one["times"]), f"{one['bytes_per_decision']:.0f}", f"{one['error']:+.0%}"),
        ]
        for one in found
    ]
    columns = ["envs/host", "process/s", "hosts/s", "times", "bytes", "model's error"]
    console.print(table(f"{config.hosts} hosts against this process", columns, rows))
    write_json(
        config.out,
        "cluster_speed.json",
        {"config": {**asdict(config), "out": None}, "points": found},
        console,
    )


if __name__ == "__main__":
    main(tyro.cli(Config))
