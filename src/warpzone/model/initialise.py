"""Orthogonal initialisation, the one every strong recipe of this field uses."""

from __future__ import annotations

import math
from typing import TypeVar

from torch import nn

RELU_GAIN = math.sqrt(2.0)

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


def orthogonal(layer: Layer, gain: float = RELU_GAIN) -> Layer:
    """Fill a layer's weights orthogonally and its bias with zeros."""
    nn.init.orthogonal_(layer.weight, gain)
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
                nn.init.orthogonal_(gate)
