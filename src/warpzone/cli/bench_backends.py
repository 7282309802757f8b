"""`warpzone bench backends`: construction, reset and step of the native engine and of nes-py, in one run."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, replace

from rich.console import Console

from warpzone.cli.bench_results import table
from warpzone.cli.doctor_trial import TrialSettings, run_trial
from warpzone.cli.flags import parse
from warpzone.cli.settings import DryRun
from warpzone.errors import ConfigError

BACKENDS = {
    "native": TrialSettings(),
    "nes-py sync": TrialSettings(backend="nes-py"),
    "nes-py async": TrialSettings(backend="nes-py", mode="async"),
}


@dataclass(frozen=True)
class BenchBackendsConfig(DryRun):
    """Time the backends against each other, in alternating rounds."""

    num_envs: int = 8
    """Environments per backend."""
    steps: int = 50
    """Decisions timed per round."""
    rounds: int = 3
    """Number of rounds; each times every backend once."""
    as_json: bool = False
    """Print JSON instead of a table."""

    def __post_init__(self) -> None:
        if min(self.num_envs, self.steps, self.rounds) < 1:
            raise ConfigError("--num-envs, --steps and --rounds must be at least 1.")


SETTINGS = {"": BenchBackendsConfig}


def compare(config: BenchBackendsConfig) -> dict[str, dict[str, list[float]]]:
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


def run(argv: list[str]) -> int:
    """Parse, measure and print; the exit code."""
    config = parse(BenchBackendsConfig(), argv, "warpzone bench backends")
    if config.dry_run:
        print(json.dumps(asdict(config), indent=2))
        return 0
    results = compare(config)
    if config.as_json:
        print(json.dumps(results, indent=2))
        return 0
    native = statistics.median(results["native"]["decisions_per_s"])
    rows = []
    for name, measured in results.items():
        times = native / statistics.median(measured["decisions_per_s"])
        rows.append(
            (name, *map(_spread, measured.values()), f"{times:,.0f} times faster" if times != 1 else "")
        )
    title = f"{config.num_envs} environments, {config.rounds} rounds: median (least - most)"
    Console().print(table(title, ("backend", "construct, s", "reset, s", "decisions/s", "native is"), rows))
    return 0


def _spread(values: list[float]) -> str:
    middle, least, most = (_short(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} - {most})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
