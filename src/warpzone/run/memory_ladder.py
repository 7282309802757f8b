"""Make a configuration that does not fit into memory smaller, step by step (AUTO_MEM=1)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import torch

from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.log import Display
from warpzone.run.loop import Outcome, train

SMALLEST_ROLLOUT = 8
SMALLEST_ENVS = 8
SMALLEST_SLICE = 64


def _more_slices(c: TrainConfig) -> TrainConfig | None:
    learn = replace(c.learn, grad_accum=2 * c.learn.grad_accum)
    recurrent = c.model.recurrent_type != "none"
    size = c.learn.decisions_per_minibatch(c.collect.num_envs, c.collect.rollout_steps, recurrent)
    return replace(c, learn=learn) if size // learn.grad_accum >= SMALLEST_SLICE else None


def _half_rollout(c: TrainConfig) -> TrainConfig | None:
    steps = c.collect.rollout_steps // 2
    return replace(c, collect=replace(c.collect, rollout_steps=steps)) if steps >= SMALLEST_ROLLOUT else None


def _half_envs(c: TrainConfig) -> TrainConfig | None:
    envs = c.collect.num_envs // 2
    return replace(c, collect=replace(c.collect, num_envs=envs)) if envs >= SMALLEST_ENVS else None


def _half_replay(c: TrainConfig) -> TrainConfig | None:
    smaller = replace(c.replay, per_capacity=c.replay.per_capacity // 2)
    return replace(c, replay=smaller) if c.replay.per and smaller.per_capacity >= 1024 else None


def _half_minibatch(c: TrainConfig) -> TrainConfig | None:
    size = c.learn.minibatch_size // 2
    return replace(c, learn=replace(c.learn, minibatch_size=size)) if size >= SMALLEST_SLICE else None


LADDER: tuple[tuple[str, Callable[[TrainConfig], TrainConfig | None]], ...] = (
    ("twice the slices of each minibatch", _more_slices),
    ("half the rollout", _half_rollout),
    ("half the environments", _half_envs),
    ("half the replay", _half_replay),
    ("half the minibatch", _half_minibatch),
)


def step_down(config: TrainConfig, rung: int) -> tuple[str, TrainConfig, int] | None:
    """The next smaller configuration from `rung` of the ladder on: what changed, it, and the rung after."""
    for offset in range(len(LADDER)):
        at = (rung + offset) % len(LADDER)
        name, change = LADDER[at]
        smaller = change(config)
        if smaller is None:
            continue
        try:
            recurrent = smaller.model.recurrent_type != "none"
            smaller.learn.decisions_per_minibatch(
                smaller.collect.num_envs, smaller.collect.rollout_steps, recurrent
            )
        except ConfigError:
            continue
        return name, smaller, at + 1
    return None


def train_within_memory(
    config: TrainConfig, display: Display, attempt: Callable[[TrainConfig, Display], Outcome] = train
) -> Outcome:
    """Train; with AUTO_MEM=1 an out-of-memory at the start makes the configuration smaller and tries again."""
    rung = 0
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
            display.say(
                f"[train][warn] out of memory: {name} "
                f"(num_envs={config.collect.num_envs}, rollout_steps={config.collect.rollout_steps}, "
                f"grad_accum={config.learn.grad_accum})"
            )
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
