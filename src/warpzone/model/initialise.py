"""Orthogonal initialisation, the one every strong recipe of this field uses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

RELU_GAIN = math.sqrt(2.0)

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread for a while."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def fill(weight: Tensor, gain: float = 1.0) -> None:
    """Make a matrix orthogonal in place.

    On one thread: the decomposition behind it is over in a tenth of a second, but where more threads than cores are at
    it, as when several runs start at once, they wait for each other for half a minute. And the same seed then gives the
    same network on any machine."""
    with one_thread():
        nn.init.orthogonal_(weight, gain)


def orthogonal(layer: Layer, gain: float = RELU_GAIN) -> Layer:
    """Fill a layer's weights orthogonally and its bias with zeros."""
    fill(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def orthogonal_cell(cell: nn.RNNCellBase) -> None:
    """Fill a recurrent cell gate by gate, so that each gate starts as a rotation."""
    for name, parameter in cell.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
        else:
            for gate in parameter.chunk(parameter.shape[0] // cell.hidden_size):
                fill(gate)
