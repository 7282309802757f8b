"""Make a configuration that does not fit into memory smaller, step by step (AUTO_MEM=1)."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.folder import run_folder
from warpzone.run.log import Display
from warpzone.run.loop import Outcome, train

SMALLEST_ROLLOUT = 8
SMALLEST_ENVS = 8
SMALLEST_SLICE = 64
SMALLEST_REPLAY = 1024


Step = Callable[[TrainConfig], TrainConfig | None]


def _more_slices(config: TrainConfig) -> TrainConfig | None:
    slices = 2 * config.learn.grad_accum
    enough = config.decisions_per_minibatch() // slices >= SMALLEST_SLICE
    return config.changed("learn", grad_accum=slices) if enough else None


def _half(part: str, name: str, least: int) -> Step:
    def halve(config: TrainConfig) -> TrainConfig | None:
        half = getattr(getattr(config, part), name) // 2
        return config.changed(part, **{name: half}) if half >= least else None

    return halve


def _half_replay(config: TrainConfig) -> TrainConfig | None:
    return _half("replay", "per_capacity", SMALLEST_REPLAY)(config) if config.replay.per else None


LADDER: tuple[tuple[str, Step], ...] = (
    ("twice the slices of each minibatch", _more_slices),
    ("half the rollout", _half("collect", "rollout_steps", SMALLEST_ROLLOUT)),
    ("half the environments", _half("collect", "num_envs", SMALLEST_ENVS)),
    ("half the replay", _half_replay),
    ("half the minibatch", _half("learn", "minibatch_size", SMALLEST_SLICE)),
)


def step_down(config: TrainConfig, rung: int) -> tuple[str, TrainConfig, int] | None:
    """The next smaller configuration from `rung` of the ladder on: what changed, it, and the rung after."""
    for offset in range(len(LADDER)):
        at = (rung + offset) % len(LADDER)
        name, change = LADDER[at]
        try:
            if (smaller := change(config)) is not None:
                smaller.decisions_per_minibatch()
                return name, smaller, at + 1
        except ConfigError:
            continue
    return None


def train_within_memory(
    config: TrainConfig, display: Display, attempt: Callable[[TrainConfig, Display], Outcome] = train
) -> Outcome:
    """Train; with AUTO_MEM=1 an out-of-memory at the start makes the configuration smaller and tries again."""
    rung, folder = 0, run_folder(config).name
    while True:
        try:
            return attempt(config, display)
        except (torch.cuda.OutOfMemoryError, MemoryError) as error:
            if os.environ.get("AUTO_MEM") != "1":
                raise ConfigError(
                    "The configuration does not fit into memory: lower --num-envs or --rollout-steps, "
                    "or set AUTO_MEM=1 to have that done."
                ) from error
            smaller = step_down(config, rung)
            if smaller is None:
                raise ConfigError("Even the smallest configuration does not fit into memory.") from error
            name, config, rung = smaller
            config = config.changed("run", run_name=folder, fresh=False)  # what was learned goes on there
            display.say(
                f"[train][warn] out of memory: {name} "
                f"(num_envs={config.collect.num_envs}, rollout_steps={config.collect.rollout_steps}, "
                f"grad_accum={config.learn.grad_accum})"
            )
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
