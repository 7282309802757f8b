"""Learners that learn together: each has its own environments, and all have the same weights.

What one of them computes from its part of the data (gradients, moments of advantages, returns and rewards) is summed
over all before it is used, so that every rank takes the step that one learner with all the data would take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from warpzone.errors import ClusterError

LEARN_S = 300.0
"""How long a rank may wait for the others in the middle of an update."""
ORDERS_S = 7 * 24 * 3600.0
"""How long a rank may wait for the next update: rank 0 evaluates, saves and may be paused meanwhile."""


class Ranks:
    """One learner alone: there is nothing to sum, and nothing is copied."""

    rank = 0
    size = 1

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks."""
        return values

    def largest(self, value: int) -> int:
        """The largest over all ranks."""
        return value

    def average_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Give every rank the mean gradient. Ranks have equally many samples."""

    def tell(self, orders: Any) -> Any:
        """What rank 0 says, on every rank."""
        return orders

    def collect(self, items: list[Any]) -> list[Any]:
        """The items of the other ranks, on rank 0."""
        return []


ALONE = Ranks()


class ProcessGroup(Ranks):
    """Processes of torch.distributed: NCCL between GPUs, gloo between CPUs."""

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device
        self._orders = dist.new_group(backend="gloo", timeout=timedelta(seconds=ORDERS_S))

    def sum(self, values: Tensor) -> Tensor:
        # Gloo sums in the order of arrival; in double precision that is below what float32 can show.
        total = values.double()
        with _others_there():
            dist.all_reduce(total)
        return total.to(values.dtype)

    def largest(self, value: int) -> int:
        found = torch.tensor(value, device=self.device)
        with _others_there():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def average_gradients(self, parameters: Sequence[Tensor]) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with _others_there():
            dist.all_reduce(flat)
        flat /= self.size
        at = 0
        for gradient in gradients:
            gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
            at += gradient.numel()

    def tell(self, orders: Any) -> Any:
        box = [orders]
        with _others_there():
            dist.broadcast_object_list(box, src=0, group=self._orders, device=torch.device("cpu"))
        return box[0]

    def collect(self, items: list[Any]) -> list[Any]:
        gathered: list[list[Any]] | None = [[] for _ in range(self.size)] if self.rank == 0 else None
        with _others_there():
            dist.gather_object(items, gathered, dst=0, group=self._orders)
        return [item for part in (gathered or [])[1:] for item in part]


@contextmanager
def joined(rank: int, size: int, device: torch.device, store: str) -> Iterator[ProcessGroup]:
    """This process as one of `size` ranks that meet at `store`, such as tcp://127.0.0.1:29500."""
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    with _others_there():
        dist.init_process_group(
            backend, init_method=store, rank=rank, world_size=size, timeout=timedelta(seconds=LEARN_S)
        )
    try:
        yield ProcessGroup(rank, size, device)
    finally:
        dist.destroy_process_group()


@contextmanager
def _others_there() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise ClusterError(f"Another learner of this run is gone ({reason}): resume the run.") from error
