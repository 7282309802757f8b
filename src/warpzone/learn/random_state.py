"""Random number streams in checkpoints."""

from __future__ import annotations

import torch


def is_continued(generator: torch.Generator, saved: torch.Tensor) -> bool:
    """Whether `restore_stream` can continue the saved stream: CPU and GPU generators differ in kind."""
    return saved.shape == generator.get_state().shape


def restore_stream(generator: torch.Generator, saved: torch.Tensor) -> None:
    """Continue a saved stream; on another kind of device, where that is impossible, keep the current one."""
    if is_continued(generator, saved):
        generator.set_state(saved.cpu())
