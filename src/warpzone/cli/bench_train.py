"""`warpzone bench train`: training against Stable-Baselines3 PPO, same network and reuse, in turn within one run."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from warpzone.cli.bench_results import in_turn, rate, ratio, spread, table, write_json
from warpzone.cli.flags import parse
from warpzone.cli.settings import DryRun
from warpzone.envs.config import cores
from warpzone.errors import ConfigError
from warpzone.run.build import build_components
from warpzone.run.config import TrainConfig
from warpzone.run.device import resolve_device
from warpzone.run.presets import preset
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK


@dataclass(frozen=True)
class BenchTrainConfig(DryRun):
    """Time whole training updates, collecting and learning, of Warpzone and of Stable-Baselines3's PPO on our
    environment and on nes-py. All sides have the same network, view, rollout size, minibatches and epochs."""

    preset: Literal["auto", "cpu", "gpu"] = "auto"
    """Preset for network, view and sizes."""
    rounds: int = 3
    """Measurements per side."""
    seconds: float = 5.0
    """Seconds per measurement; at least one update."""
    num_envs: int = 0
    """Number of environments (0 = the preset's)."""
    threads: int = 0
    """Threads of every side (0 = all cores)."""
    nes_py_envs: int = 8
    """Environments on nes-py, one process each (0 = leave nes-py out)."""
    out: Path | None = None
    """JSON file for the results."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or min(self.seconds, self.num_envs, self.threads, self.nes_py_envs) < 0:
            raise ConfigError("--rounds must be at least 1 and no other number negative.")

    def training(self) -> TrainConfig:
        """The training that is measured: clipped PPO whose number of passes does not depend on luck."""
        config = preset(self.preset)
        config = config.changed("learn", algo="ppo", targets=None, objective=None, target_kl=0.0)
        config = config.changed("collect", num_envs=self.num_envs or config.collect.num_envs)
        config = config.changed("run", torch_threads=self.threads).changed("stage", env_threads=self.threads)
        config.check()
        decisions = config.decisions_per_update
        if self.nes_py_envs and decisions % self.nes_py_envs:
            raise ConfigError(f"A rollout of {decisions} decisions does not divide by --nes-py-envs.")
        return config


@dataclass
class Side:
    """One trainer: its update, which returns the loss, the size of its network, and the losses so far."""

    update: Callable[[], float]
    parameters: int
    decisions: int
    """Decisions per update."""
    losses: list[float] = field(default_factory=list)

    def work(self) -> int:
        """Make an update; returns the decisions it was trained on."""
        self.losses.append(self.update())
        return self.decisions


def ours(config: TrainConfig, learner: str, device: torch.device, stack: ExitStack) -> Side:
    """Warpzone's collector and learner, as the training loop uses them."""
    config = config.changed("run", learner=learner)
    parts = build_components(config, device, lambda line: None)
    stack.callback(parts.close)
    parts.collector.start()
    parameters = sum(p.numel() for p in parts.learner.policy.parameters())

    def update() -> float:
        return parts.learner.update(parts.collector.collect())["loss_total"]

    return Side(update, parameters, config.decisions_per_update)


def theirs(config: TrainConfig, nes_py_envs: int, device: torch.device, stack: ExitStack) -> Side:
    """Stable-Baselines3 on our environment, or on nes-py where a number of environments is given."""
    from warpzone.cli.bench_sb3 import make_ppo, nes_py_environments, our_environments

    envs = nes_py_environments(config, nes_py_envs) if nes_py_envs else our_environments(config)
    stack.callback(envs.close)
    model = make_ppo(config, envs, device)
    decisions = model.n_steps * envs.num_envs

    def update() -> float:
        model.learn(decisions, log_interval=None, reset_num_timesteps=False)  # type: ignore[arg-type]
        return float(model.logger.name_to_value["train/loss"])

    return Side(update, sum(p.numel() for p in model.policy.parameters()), decisions)


def sides(config: TrainConfig, nes_py_envs: int, device: torch.device, stack: ExitStack) -> dict[str, Side]:
    """Every trainer there is, after one update that is not timed."""
    found = {}
    if device.type == "cpu":
        found["warpzone native"] = ours(config, "native", device, stack)
    found["warpzone torch"] = ours(config, "torch", device, stack)
    found["SB3"] = theirs(config, 0, device, stack)
    if nes_py_envs:
        found["SB3 + nes-py"] = theirs(config, nes_py_envs, device, stack)
    torch.set_num_threads(config.run.torch_threads or cores())
    for side in found.values():
        side.work()
    return found


SETTINGS = {"": BenchTrainConfig}


def run(argv: list[str]) -> int:
    config = parse(BenchTrainConfig(), argv, "warpzone bench train")
    training = config.training()
    if config.dry_run:
        print(json.dumps(training.as_dict(), indent=2))
        return EXIT_OK
    if find_spec("stable_baselines3") is None:
        raise ConfigError("Stable-Baselines3 is not installed: pip install stable-baselines3.")
    if config.nes_py_envs and find_spec("nes_py") is None:
        raise ConfigError(
            "nes-py is not installed: pip install nes-py, or leave it out with --nes-py-envs 0."
        )
    console = Console()
    device = resolve_device(training)
    with ExitStack() as stack:
        with console.status("[bold]building every side and making one update with each"):
            trainers = sides(training, config.nes_py_envs, device, stack)
        wrong = what_is_wrong(trainers)
        if wrong is None:
            measures = {name: partial(rate, side.work, config.seconds) for name, side in trainers.items()}
            rates = in_turn(measures, config.rounds, console)
            wrong = what_is_wrong(trainers)
    if wrong is not None:
        console.print(f"[benchmark] {wrong}: the times would mean nothing", markup=False, soft_wrap=True)
        return EXIT_FAILED
    results = summary(rates)
    bases = [name for name in results if name.startswith("SB3")]
    rows = [
        (name, f"{r['decisions_per_s']:,.0f}", *(spread(r["times"][base]) for base in bases))
        for name, r in results.items()
    ]
    size = next(iter(trainers.values())).parameters
    title = (
        f"training, {training.model.encoder} network of {size:,} weights, rollouts of "
        f"{training.decisions_per_update:,}, {training.learn.recipe().epochs} epochs"
    )
    console.print(table(title, ("trainer", "decisions/s", *(f"times {base}" for base in bases)), rows))
    write_json(config.out, "bench_train.json", {"config": training.as_dict(), "results": results}, console)
    return EXIT_OK


def what_is_wrong(trainers: dict[str, Side]) -> str | None:
    """Correctness first: the same network everywhere, and losses that are numbers."""
    sizes = {name: side.parameters for name, side in trainers.items()}
    if len(set(sizes.values())) != 1:
        return f"the networks are not the same ({sizes})"
    for name, side in trainers.items():
        if not side.losses or not all(map(math.isfinite, side.losses)):
            return f"the losses of {name} are not finite"
    return None


def summary(rates: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Decisions a second, and how many times each of Stable-Baselines3's that is."""
    bases = [name for name in rates if name.startswith("SB3")]
    return {
        name: {
            "decisions_per_s": statistics.median(values),
            "rounds": values,
            "times": {base: ratio(values, rates[base]) for base in bases},
        }
        for name, values in rates.items()
    }
