"""`warpzone bench replay`: how exactly and how fast the prioritised replay samples."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from warpzone.cli.bench_results import in_turn, rate, table, write_json
from warpzone.cli.flags import parse
from warpzone.cli.settings import DryRun
from warpzone.errors import ConfigError
from warpzone.learn.config import ReplayConfig
from warpzone.learn.priorities import PrefixSums, Priorities, SumTree, kl_to_exact
from warpzone.learn.replay import PrioritisedReplay
from warpzone.learn.rollout import allocate_rollout
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK

LARGEST_KL = 1e-3
"""A sampler that diverges further from the exact distribution is wrong."""
STACK = 4


@dataclass(frozen=True)
class BenchReplayConfig(DryRun):
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

    def __post_init__(self) -> None:
        if min(self.capacity, self.batch_size, self.samples, self.rounds, *self.size) < 1 or self.seconds < 0:
            raise ConfigError("Sizes, --samples and --rounds must be at least 1.")


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
    """A full replay of random frames."""
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


def counted(count: int, sample: Callable[[], object]) -> int:
    """Sample, and return how many decisions that gave."""
    sample()
    return count


SETTINGS = {"": BenchReplayConfig}


def run(argv: list[str]) -> int:
    config = parse(BenchReplayConfig(), argv, "warpzone bench replay")
    found = samplers(config.capacity, config.seed)
    if config.dry_run:
        print(json.dumps({"samplers": list(found), "capacity": config.capacity, "samples": config.samples}))
        return EXIT_OK
    console = Console()
    divergence: dict[str, float] = {}
    sides: dict[str, Callable[[], float]] = {}
    for name, (priorities, device) in found.items():
        generator = torch.Generator(device).manual_seed(config.seed)
        with console.status(f"[bold]{config.samples:,} samples of {name}"):
            divergence[name] = kl_to_exact(priorities, config.samples, generator)
        learner = devices()[-1] if name == "sum tree" else device
        replay = filled_replay(config, learner, on_device=name != "sum tree")
        count = config.batch_size
        numbers = partial(counted, count, partial(priorities.draw, count, generator))
        sides[name] = partial(rate, numbers, config.seconds)
        # With their frames, gathered and brought to the device.
        sides[f"{name}, frames"] = partial(rate, partial(counted, count, replay.sample), config.seconds)
    rates = in_turn(sides, config.rounds, console)
    results = [
        {
            "sampler": name,
            "device": device.type,
            "kl": divergence[name],
            "draws_per_s": statistics.median(rates[name]),
            "decisions_per_s": statistics.median(rates[f"{name}, frames"]),
        }
        for name, (_, device) in found.items()
    ]
    title = f"replay of {config.capacity:,} decisions, batches of {config.batch_size}"
    rows = [
        (str(r["sampler"]), f"{r['kl']:.2e}", f"{r['draws_per_s']:,.0f}", f"{r['decisions_per_s']:,.0f}")
        for r in results
    ]
    console.print(table(title, ("sampler", "KL to exact", "samples/s", "with frames/s"), rows))
    settings = {**asdict(config), "out": str(config.out)}
    write_json(config.out, "bench_replay.json", {"config": settings, "results": results}, console)
    worst = max(divergence, key=lambda name: divergence[name])
    if divergence[worst] > LARGEST_KL:
        console.print(f"[benchmark] {worst} diverges by {divergence[worst]:.2e}: it is wrong", markup=False)
        return EXIT_FAILED
    console.print(f"[benchmark] KL <= {divergence[worst]:.2e}, allowed {LARGEST_KL:.0e}", markup=False)
    return EXIT_OK
