"""Augmented observations: the picture a little to the side shows the same game (DrAC, https://arxiv.org/abs/2006.12862)."""

from __future__ import annotations

import torch
from torch import Tensor

PART = 20
"""A picture moves by up to this part of its size: four of 84 pixels."""


def random_shifts(obs: Tensor, generator: torch.Generator) -> Tensor:
    """A shift [..., 2] in pixels for each observation [..., C, H, W], in any direction."""
    most = max(1, max(obs.shape[-2:]) // PART)
    return torch.randint(-most, most + 1, (*obs.shape[:-3], 2), generator=generator, device=obs.device)


def shifted(obs: Tensor, shifts: Tensor) -> Tensor:
    """Observations [..., C, H, W] moved by [..., 2] pixels down and to the right; the edge is repeated."""
    flat, by = obs.flatten(0, -4), shifts.flatten(0, -2)
    height, width = obs.shape[-2:]
    rows = (torch.arange(height, device=obs.device) - by[:, :1]).clamp(0, height - 1)
    columns = (torch.arange(width, device=obs.device) - by[:, 1:]).clamp(0, width - 1)
    number = torch.arange(len(flat), device=obs.device)[:, None, None]
    moved = flat.movedim(1, -1)[number, rows[:, :, None], columns[:, None, :]]
    return moved.movedim(-1, 1).reshape(obs.shape)
