"""The device that a run learns on."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig

_GPU_SIZED = ("nature", "impala", "strided")


def resolve_device(config: TrainConfig, say: Callable[[str], None] = print) -> torch.device:
    """The device to learn on. Falling back to the CPU is said, and for a network made for GPUs refused."""
    wanted = config.run.device
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        gpu_sized = config.model.encoder in _GPU_SIZED
        if gpu_sized and os.environ.get("MARIO_ALLOW_CPU_AUTO") != "1":
            raise ConfigError(
                f"No CUDA device is available and the {config.model.encoder} network is made for one: use "
                "--preset cpu, --device cpu, or set MARIO_ALLOW_CPU_AUTO=1 to train slowly."
            )
        say("[train] no CUDA device: training on the CPU")
        return torch.device("cpu")
    return named_device(wanted)


def named_device(wanted: str) -> torch.device:
    """The device of a name, if this machine has it."""
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise ConfigError(f"Unknown device {wanted!r}: use auto, cpu, cuda or cuda:N.") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"Device {wanted!r} is not supported: use auto, cpu, cuda or cuda:N.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("No CUDA device is available: use --device cpu.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"There is no {wanted}: this machine has {torch.cuda.device_count()} CUDA devices.")
    return device
