"""Construction, reset and step of the native engine, of nes-py and of nes-py in workers, in alternating rounds.

python bench/backends.py [--num-envs 8] [--steps 50] [--rounds 3] [--out FILE.json]
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import tyro
from rich.console import Console

from warpzone.cli.bench_results import table, write_json
from warpzone.cli.doctor_trial import TrialSettings, run_trial

BACKENDS = {
    "native": TrialSettings(),
    "nes-py sync": TrialSettings(backend="nes-py"),
    "nes-py async": TrialSettings(backend="nes-py", mode="async"),
}


@dataclass(frozen=True)
class Config:
    num_envs: int = 8
    """Environments per backend."""
    steps: int = 50
    """Decisions timed per round."""
    rounds: int = 3
    """Number of rounds; each times every backend once."""
    out: Path | None = None
    """JSON file for the results."""


def compare(config: Config) -> dict[str, dict[str, list[float]]]:
    """What every round measured, by backend and quantity."""
    results: dict[str, dict[str, list[float]]] = {name: {} for name in BACKENDS}
    for _ in range(config.rounds):
        for name, backend in BACKENDS.items():
            took = run_trial(replace(backend, num_envs=config.num_envs, steps=config.steps))
            measured = {key: took[key] for key in ("construct_s", "reset_s")}
            measured["decisions_per_s"] = config.num_envs / took["step_s"]
            for quantity, value in measured.items():
                results[name].setdefault(quantity, []).append(value)
    return results


def main(config: Config) -> None:
    results = compare(config)
    native = statistics.median(results["native"]["decisions_per_s"])
    rows = []
    for name, measured in results.items():
        times = native / statistics.median(measured["decisions_per_s"])
        faster = f"{times:,.0f} times faster" if times != 1 else ""
        rows.append((name, *map(spread, measured.values()), faster))
    title = f"{config.num_envs} environments, {config.rounds} rounds: median (least - most)"
    console = Console()
    console.print(table(title, ("backend", "construct, s", "reset, s", "decisions/s", "native is"), rows))
    write_json(config.out, "backends.json", {"results": results}, console)


def spread(values: list[float]) -> str:
    middle, least, most = (short(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} - {most})"


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
