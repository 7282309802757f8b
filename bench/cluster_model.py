"""What the model of `warpzone.cluster.model` predicts for 16, 160 and 1,600 cores.

python bench/cluster_model.py [--out FILE.json]
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.console import Console

from warpzone.cli.bench_results import table, write_json
from warpzone.cluster.model import Costs, predict


@dataclass(frozen=True)
class Config:
    out: Path | None = None
    """JSON file for the results."""


def main(config: Config) -> None:
    console, costs, found = Console(), Costs(act_us=0.3), []
    for cores in (16, 160, 1600):
        for learner_cores in (4, 16):
            size = {
                "cores": cores,
                "hosts": max(1, cores // 16),
                "envs": 64 * cores,
                "learner_cores": learner_cores,
            }
            found.append({**size, "gbit_link": 10, **asdict(predict(costs, gbit_per_s=10, **size))})
    columns = ["cores", "hosts", "learner's cores", "decisions/s", "busiest", "lag ms", "Gbit/s"]
    rows = [
        [
            *(
                f"{one['cores']:,}",
                str(one["hosts"]),
                str(one["learner_cores"]),
                f"{one['decisions_per_s']:,.0f}",
            ),
            *(one["busiest"], f"{one['lag_ms']:.0f}", f"{one['gbit_per_s']:.1f}"),
        ]
        for one in found
    ]
    console.print(table("predicted, one learner, 10 Gbit/s", columns, rows))
    write_json(config.out, "cluster_model.json", {"costs": asdict(costs), "predictions": found}, console)


if __name__ == "__main__":
    main(tyro.cli(Config))
