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
    """Parameters and buffers in the policy's own order."""
    ready: torch.cuda.Event | None = None
    """Passed on the device once the copies are complete."""


def take_snapshot(policy: nn.Module, version: int) -> Snapshot:
    weights = tuple(tensor.detach().clone() for tensor in _tensors(policy))
    if not weights[0].is_cuda:
        return Snapshot(version, weights)
    ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
    ready.record()
    return Snapshot(version, weights, ready)


@torch.no_grad()
def install_snapshot(policy: nn.Module, snapshot: Snapshot) -> None:
    """Copy a snapshot's weights into another policy of the same shape, on the current stream."""
    if snapshot.ready is not None:
        stream = torch.cuda.current_stream()
        stream.wait_event(snapshot.ready)
        for tensor in snapshot.weights:
            tensor.record_stream(stream)
    torch._foreach_copy_(_tensors(policy), list(snapshot.weights))


def _tensors(policy: nn.Module) -> list[Tensor]:
    return list(chain(policy.parameters(), policy.buffers()))
