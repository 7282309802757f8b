"""Sampling items in proportion to their priority, exactly: a sum tree on the CPU, prefix sums on any device.

Both sample one item from each of n equal slices of the total priority, so that a batch covers the whole range.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class Priorities(Protocol):
    """Non-negative weights of `capacity` items."""

    @property
    def leaves(self) -> Tensor:
        """The weight of every item, [capacity]."""
        ...

    def set(self, index: Tensor, weight: Tensor) -> None: ...

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n items, with repetition, and the probability of each."""
        ...


class SumTree:
    """A binary tree of sums in one array: both setting and drawing take log2(capacity) vectorised steps."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.depth = max(1, (capacity - 1).bit_length())
        self.first_leaf = 1 << self.depth
        self.sums = np.zeros(2 * self.first_leaf, np.float64)

    @property
    def leaves(self) -> Tensor:
        return torch.from_numpy(self.sums[self.first_leaf : self.first_leaf + self.capacity])

    def set(self, index: Tensor, weight: Tensor) -> None:
        node = index.numpy() + self.first_leaf
        self.sums[node] = weight.numpy()
        for _ in range(self.depth):
            node = node >> 1
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        total = self.sums[1]
        points = _points(n, generator, torch.device("cpu")).numpy() * total
        node = np.ones(n, np.int64)
        for _ in range(self.depth):
            left = self.sums[2 * node]
            # Rounding may leave a point at the very edge: an empty branch is never taken.
            goes_right = (points >= left) & (self.sums[2 * node + 1] > 0)
            points = np.where(goes_right, points - left, points)
            node = 2 * node + goes_right
        return torch.from_numpy(node - self.first_leaf), torch.from_numpy(self.sums[node] / total)


class PrefixSums:
    """One running sum over all items and a binary search in it: few kernels and no wait, so good on a GPU."""

    def __init__(self, capacity: int, device: torch.device | str) -> None:
        self.weights = torch.zeros(capacity, dtype=torch.float64, device=device)

    @property
    def leaves(self) -> Tensor:
        return self.weights

    def set(self, index: Tensor, weight: Tensor) -> None:
        self.weights[index] = weight.to(self.weights.dtype)

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        sums = self.weights.cumsum(0)
        points = _points(n, generator, sums.device) * sums[-1]
        index = torch.searchsorted(sums, points, right=True)
        # Rounding may put a point at the very end; the first sum to reach the total is the last item's.
        index = torch.minimum(index, torch.searchsorted(sums, sums[-1:]))
        return index, self.weights[index] / sums[-1]


def _points(n: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """One random point in each of n equal slices of [0, 1)."""
    jitter = torch.rand(n, generator=generator, dtype=torch.float64, device=device)
    return (torch.arange(n, dtype=torch.float64, device=device) + jitter) / n


def kl_to_exact(priorities: Priorities, n_samples: int, generator: torch.Generator, bins: int = 256) -> float:
    """KL divergence of the sampled distribution from the exact one, over at most `bins` equal ranges of items.

    Ranges keep the divergence meaningful: over single items it would mostly measure how few samples there are.
    """
    weights = priorities.leaves.double().cpu()
    counts = torch.zeros_like(weights)
    batch = min(n_samples, 4096)
    for _ in range(max(1, n_samples // batch)):
        index, _ = priorities.draw(batch, generator)
        counts += torch.bincount(index.cpu(), minlength=len(weights))
    width = -(-len(weights) // bins)
    group = torch.arange(len(weights)) // width
    sampled = torch.zeros(int(group[-1]) + 1, dtype=torch.float64).index_add_(0, group, counts / counts.sum())
    exact = torch.zeros_like(sampled).index_add_(0, group, weights / weights.sum())
    seen = sampled > 0
    return float((sampled[seen] * (sampled[seen] / exact[seen]).log()).sum())
