"""`warpzone bench backends`: construction, reset and step of the native engine and of nes-py, in one run."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from warpzone.cli.flags import parse
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError

VIEW = ViewConfig(frame_stack=1)
RUN_RIGHT = 3


@dataclass(frozen=True)
class BenchBackendsConfig:
    """Time the backends against each other, in alternating rounds."""

    num_envs: int = 8
    """Environments per backend."""
    steps: int = 50
    """Decisions timed per round."""
    rounds: int = 3
    """Number of rounds; each times every backend once."""
    as_json: bool = False
    """Print JSON instead of a table."""
    dry_run: bool = False
    """Print the resolved configuration and exit."""

    def __post_init__(self) -> None:
        if min(self.num_envs, self.steps, self.rounds) < 1:
            raise ConfigError("--num-envs, --steps and --rounds must be at least 1.")


def _native(num_envs: int) -> Any:
    return MarioVectorEnv(num_envs, "1-1", frame_stack=1, autoreset_mode="same_step")


def _nes_py(num_envs: int, workers: bool) -> Any:
    backend = BackendConfig(backend="nes-py", async_env=workers, strict_env=True)
    return BackendVectorEnv(num_envs, ["1-1"], view=VIEW, backend=backend, say=lambda line: None)


BACKENDS: dict[str, Callable[[int], Any]] = {
    "native": _native,
    "nes-py sync": lambda n: _nes_py(n, workers=False),
    "nes-py async": lambda n: _nes_py(n, workers=True),
}


def measure(make: Callable[[int], Any], num_envs: int, steps: int) -> dict[str, float]:
    """Seconds to make and to reset, and decisions a second; checks first that running right moves everyone."""
    began = time.perf_counter()
    envs = make(num_envs)
    made = time.perf_counter()
    try:
        _, info = envs.reset(seed=0)
        reset = time.perf_counter()
        start_x = info["x_pos"].copy()
        actions = np.full(num_envs, RUN_RIGHT)
        for _ in range(5):
            *_, info = envs.step(actions)
        if not (info["x_pos"] > start_x).all():
            raise RuntimeError(f"running right moved nobody: x was {start_x}, is {info['x_pos']}")
        stepping = time.perf_counter()
        for _ in range(steps):
            envs.step(actions)
        took = time.perf_counter() - stepping
    finally:
        envs.close()
    return {"construct_s": made - began, "reset_s": reset - made, "decisions_per_s": steps * num_envs / took}


def compare(config: BenchBackendsConfig) -> dict[str, dict[str, list[float]]]:
    """What every round measured, by backend and quantity."""
    results: dict[str, dict[str, list[float]]] = {name: {} for name in BACKENDS}
    for _ in range(config.rounds):
        for name, make in BACKENDS.items():
            for quantity, value in measure(make, config.num_envs, config.steps).items():
                results[name].setdefault(quantity, []).append(value)
    return results


SETTINGS = {"": BenchBackendsConfig}


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
    table = Table(title=f"{config.num_envs} environments, {config.rounds} rounds: median (least - most)")
    for column in ("backend", "construct, s", "reset, s", "decisions/s", "native is"):
        table.add_column(column)
    native = statistics.median(results["native"]["decisions_per_s"])
    for name, measured in results.items():
        cells = [_spread(measured[key]) for key in ("construct_s", "reset_s", "decisions_per_s")]
        ratio = native / statistics.median(measured["decisions_per_s"])
        table.add_row(name, *cells, "" if name == "native" else f"{ratio:,.0f} times faster")
    Console().print(table)
    return 0


def _spread(values: list[float]) -> str:
    middle, least, most = (_short(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} - {most})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
