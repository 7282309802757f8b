"""Minibatches of a rollout: random decisions for a policy without memory, whole sequences for one with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from warpzone.learn.augmentation import random_shifts
from warpzone.learn.rollout import Rollout
from warpzone.model.memory import State


class Batch(NamedTuple):
    """What one gradient step reads. Shapes are [B] without memory and [T, B] with."""

    obs: Tensor
    floats: Tensor
    """[4, ...]: old log-probabilities, advantages, returns, old values."""
    integers: Tensor
    """[2, ...]: actions, stages."""
    starts: Tensor | None = None
    state: State = ()
    weight: Tensor | None = None
    """Importance weights of replayed samples."""
    teacher: Tensor | None = None
    """[..., A]: what a teacher would do, in probabilities."""
    shifts: Tensor | None = None
    """[..., 2]: how far each observation is shifted down and to the right where it is to be played alike."""


class Samples:
    """A rollout with its targets, laid out so that gathering a minibatch takes few kernels."""

    def __init__(
        self,
        rollout: Rollout,
        old_logp: Tensor,
        advantages: Tensor,
        returns: Tensor,
        old_values: Tensor,
        augment: torch.Generator | None = None,
    ) -> None:
        self.rollout = rollout
        self.floats = torch.stack([old_logp, advantages, returns, old_values])
        self.integers = torch.stack([rollout.actions, rollout.stage])
        self.teacher: Tensor | None = None
        self.augment = augment
        """Draws the shifts of observations that are to be played alike; none are drawn without it."""
        steps = torch.arange(rollout.steps, device=rollout.device).repeat_interleave(rollout.num_envs)
        envs = torch.arange(rollout.num_envs, device=rollout.device).repeat(rollout.steps)
        self.frame_index = rollout.frame_index(steps, envs)

    def decisions(self, index: Tensor, out: Batch | None = None) -> Batch:
        """The batch of flat decision numbers t * N + n; `out` is filled in place if given."""
        rollout = self.rollout
        obs = rollout.stacked(
            self.frame_index.index_select(0, index),
            None if out is None else out.obs.view(-1, *rollout.frames.shape[2:]),
        )
        floats = torch.index_select(self.floats.flatten(1), 1, index, out=None if out is None else out.floats)
        integers = torch.index_select(
            self.integers.flatten(1), 1, index, out=None if out is None else out.integers
        )
        teacher = None
        if self.teacher is not None:
            teacher = torch.index_select(
                self.teacher.flatten(0, 1), 0, index, out=None if out is None else out.teacher
            )
        shifts = self._shifts(obs)
        if shifts is not None and out is not None and out.shifts is not None:
            shifts = out.shifts.copy_(shifts)
        return Batch(obs, floats, integers, teacher=teacher, shifts=shifts)

    def sequences(self, envs: Tensor) -> Batch:
        """The whole rollouts of some environments, with the memory each began with."""
        rollout = self.rollout
        obs = rollout.sequences(envs)
        return Batch(
            obs=obs,
            floats=self.floats.index_select(2, envs),
            integers=self.integers.index_select(2, envs),
            starts=rollout.starts.index_select(1, envs),
            state=tuple(part.index_select(0, envs) for part in rollout.state0),
            teacher=None if self.teacher is None else self.teacher.index_select(1, envs),
            shifts=self._shifts(obs),
        )

    def _shifts(self, obs: Tensor) -> Tensor | None:
        return None if self.augment is None else random_shifts(obs, self.augment)


def shuffled(count: int, size: int, generator: torch.Generator, device: torch.device) -> Iterator[Tensor]:
    """Every number below `count` once, in random order, in pieces of `size`."""
    order = torch.randperm(count, generator=generator, device=device)
    return iter(order.split(size))  # type: ignore[no-untyped-call]
