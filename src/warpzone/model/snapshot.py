"""Weights at one moment, which a collector reads without a lock while the learner learns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Snapshot:
    """Copies that nobody writes to again: publishing one is assigning a reference."""

    version: int
    """Updates these weights have seen."""
    weights: tuple[Tensor, ...]
    ready: torch.cuda.Event | None = None
    """Passed on the device once the copies are complete."""


def take_snapshot(policy: nn.Module, version: int) -> Snapshot:
    weights = tuple(tensor.detach().clone() for tensor in tensors_of(policy))
    if not weights[0].is_cuda:
        return Snapshot(version, weights)
    ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
    ready.record()
    return Snapshot(version, weights, ready)


def tensors_of(policy: nn.Module) -> list[Tensor]:
    """Parameters and buffers in the policy's own order."""
    return list(chain(policy.parameters(), policy.buffers()))
