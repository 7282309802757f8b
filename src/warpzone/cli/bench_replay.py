"""`warpzone bench replay`: how exactly and how fast the prioritised replay draws."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from warpzone.cli.bench_results import in_turn, write_json
from warpzone.cli.flags import parse
from warpzone.errors import ConfigError
from warpzone.learn.priorities import PrefixSums, Priorities, SumTree, kl_to_exact
from warpzone.learn.replay import PrioritisedReplay, ReplayConfig
from warpzone.learn.rollout import allocate_rollout
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK

LARGEST_KL = 1e-3
"""A sampler that diverges further from the exact distribution is wrong."""
STACK = 4


@dataclass(frozen=True)
class BenchReplayConfig:
    """Compare the samplers with the exact distribution, then time them, with and without observations."""

    capacity: int = 131072
    """Decisions in the replay."""
    batch_size: int = 256
    """Decisions per sample."""
    samples: int = 1_000_000
    """Decisions sampled for each KL divergence."""
    size: tuple[int, int] = (84, 84)
    """Height and width of a frame, in pixels."""
    rounds: int = 5
    """Measurements per sampler."""
    seconds: float = 0.5
    """Seconds per measurement."""
    seed: int = 0
    """Random seed."""
    out: Path | None = None
    """JSON file for the results."""
    dry_run: bool = False
    """Print what would be measured and exit."""

    def __post_init__(self) -> None:
        if min(self.capacity, self.batch_size, self.samples, self.rounds, *self.size) < 1 or self.seconds < 0:
            raise ConfigError("Sizes, --samples and --rounds must be at least 1.")


@dataclass(frozen=True)
class Result:
    """One sampler on one device."""

    sampler: str
    device: str
    kl: float
    """Divergence of what is drawn from the exact distribution."""
    draws_per_s: float
    """Decisions drawn in a second, numbers only."""
    decisions_per_s: float
    """The same with pictures gathered and brought to the device."""


def devices() -> list[torch.device]:
    return [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])


def samplers(capacity: int, seed: int) -> dict[str, tuple[Priorities, torch.device]]:
    """Every sampler there is, filled with the same uneven priorities."""
    weights = torch.rand(capacity, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** 4
    found: dict[str, tuple[Priorities, torch.device]] = {"sum tree": (SumTree(capacity), torch.device("cpu"))}
    for device in devices():
        found[f"prefix sums on {device.type}"] = (PrefixSums(capacity, device), device)
    for priorities, device in found.values():
        priorities.set(torch.arange(capacity, device=device), weights.to(device))
    return found


def filled_replay(config: BenchReplayConfig, device: torch.device, *, on_device: bool) -> PrioritisedReplay:
    """A full replay of random pictures."""
    num_envs, steps = 64, 32
    rollout = allocate_rollout(steps, num_envs, (1, *config.size), STACK, device=device)
    rollout.frames.random_(0, 256)
    settings = ReplayConfig(
        per=True, per_capacity=max(config.capacity, steps * num_envs), per_batch_size=config.batch_size,
        per_gpu_sample=on_device, per_prefetch=False,
    )  # fmt: skip
    replay = PrioritisedReplay(settings, rollout, device=device, seed=config.seed)
    errors = torch.rand(steps, num_envs, generator=torch.Generator().manual_seed(config.seed)).to(device)
    for _ in range(replay.slots):
        replay.push(rollout, rollout.values, errors)
    return replay


def rate(draw: Callable[[], object], per_call: int, seconds: float, device: torch.device) -> float:
    """Decisions a second over about so many seconds."""
    calls, began = 0, time.perf_counter()
    while not calls or time.perf_counter() - began < seconds:
        draw()
        calls += 1
    if device.type == "cuda":
        torch.cuda.synchronize()
    return per_call * calls / (time.perf_counter() - began)


SETTINGS = {"": BenchReplayConfig}


def run(argv: list[str]) -> int:
    """Parse, check, measure and print; the exit code."""
    config = parse(BenchReplayConfig(), argv, "warpzone bench replay")
    found = samplers(config.capacity, config.seed)
    if config.dry_run:
        print(json.dumps({"samplers": list(found), "capacity": config.capacity, "samples": config.samples}))
        return EXIT_OK
    console = Console()
    divergence: dict[str, float] = {}
    generators = {
        name: torch.Generator(device).manual_seed(config.seed) for name, (_, device) in found.items()
    }
    for name, (priorities, _) in found.items():
        with console.status(f"[bold]{config.samples:,} draws of {name}"):
            divergence[name] = kl_to_exact(priorities, config.samples, generators[name])
    results = _timed(config, found, generators, divergence, console)
    console.print(table(results, config))
    write_json(
        config.out,
        "bench_replay.json",
        {"config": _plain(config), "results": [asdict(one) for one in results]},
        console,
    )
    worst = max(divergence, key=lambda name: divergence[name])
    if divergence[worst] > LARGEST_KL:
        console.print(f"[benchmark] {worst} diverges by {divergence[worst]:.2e}: it is wrong", markup=False)
        return EXIT_FAILED
    console.print(f"[benchmark] KL <= {divergence[worst]:.2e}, allowed {LARGEST_KL:.0e}", markup=False)
    return EXIT_OK


def _timed(
    config: BenchReplayConfig,
    found: dict[str, tuple[Priorities, torch.device]],
    generators: dict[str, torch.Generator],
    divergence: dict[str, float],
    console: Console,
) -> list[Result]:
    measures: dict[str, Callable[[], float]] = {}
    for name, (priorities, device) in found.items():
        learner = devices()[-1] if name == "sum tree" else device
        replay = filled_replay(config, learner, on_device=name != "sum tree")

        def draw(priorities: Priorities = priorities, name: str = name) -> object:
            return priorities.draw(config.batch_size, generators[name])

        def numbers(draw: Callable[[], object] = draw, device: torch.device = device) -> float:
            return rate(draw, config.batch_size, config.seconds, device)

        def pictures(replay: PrioritisedReplay = replay, device: torch.device = learner) -> float:
            return rate(replay.sample, config.batch_size, config.seconds, device)

        measures[name], measures[f"{name}, pictures"] = numbers, pictures
    rates = in_turn(measures, config.rounds, console)
    return [
        Result(
            sampler=name,
            device=device.type,
            kl=divergence[name],
            draws_per_s=statistics.median(rates[name]),
            decisions_per_s=statistics.median(rates[f"{name}, pictures"]),
        )
        for name, (_, device) in found.items()
    ]


def _plain(config: BenchReplayConfig) -> dict[str, object]:
    return {**asdict(config), "out": str(config.out)}


def table(results: list[Result], config: BenchReplayConfig) -> Table:
    shown = Table(title=f"replay of {config.capacity:,} decisions, batches of {config.batch_size}")
    for column in ("sampler", "KL to exact", "draws/s", "with pictures/s"):
        shown.add_column(column, justify="left" if column == "sampler" else "right")
    for one in results:
        shown.add_row(one.sampler, f"{one.kl:.2e}", f"{one.draws_per_s:,.0f}", f"{one.decisions_per_s:,.0f}")
    return shown
