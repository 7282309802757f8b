"""Streams of random numbers that outlive the process."""

from __future__ import annotations

import torch


def is_continued(generator: torch.Generator, saved: torch.Tensor) -> bool:
    """Whether `restore_stream` will go on with the saved stream: those of a CPU and of a GPU are of two kinds."""
    return saved.shape == generator.get_state().shape


def restore_stream(generator: torch.Generator, saved: torch.Tensor) -> None:
    """Go on with a saved stream; on another kind of device, where that is impossible, with the one begun here."""
    if is_continued(generator, saved):
        generator.set_state(saved.cpu())
