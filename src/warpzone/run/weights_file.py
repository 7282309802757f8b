"""An agent to give away: its weights as safetensors, and beside them a card in JSON that says what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from warpzone.errors import CheckpointError
from warpzone.run.sidecar import CheckpointMeta

SUFFIX = ".safetensors"
Bits = Literal[4, 8, 16]
LARGE = 1 << 16
"""Elements from which on a matrix is kept in less than half precision."""
GROUP = 64
"""Neighbours in a row that share a scale in half bytes."""
SCALE = ".scale"
_KEPT = ("view", "model", "stage", "reward")


def save_weights(
    path: Path,
    weights: Mapping[str, torch.Tensor],
    meta: CheckpointMeta,
    card: Mapping[str, Any],
    bits: Bits = 8,
) -> Path:
    """Write `path` and its card: half precision, and large matrices in `bits` for each number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        values = tensor.detach().cpu().float()
        is_large = values.dim() == 2 and values.numel() >= LARGE
        if is_large and bits == 4 and values.shape[1] % GROUP == 0:
            packed[name], packed[name + SCALE] = _in_half_bytes(values)
        elif is_large and bits < 16:
            packed[name], packed[name + SCALE] = _in_bytes(values)
        else:
            packed[name] = values.half().contiguous()
    save_file(packed, str(path))
    described = {
        "global_step": meta.global_step,
        "global_update": meta.global_update,
        "config": {name: meta.config[name] for name in _KEPT if name in meta.config},
        "architecture": meta.architecture,
        "rom_sha256": meta.rom_sha256,
        "clear_rate": meta.clear_rate,
        **card,
    }
    path.with_suffix(".json").write_text(json.dumps(described, indent=2) + "\n")
    return path


def load_weights(path: Path) -> tuple[dict[str, torch.Tensor], CheckpointMeta]:
    """Read both. Raises CheckpointError; nothing in the files is executed."""
    try:
        packed = load_file(str(path))
        card = json.loads(path.with_suffix(".json").read_text())
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} or its card can't be read ({error}): choose another agent.") from error
    weights = {name: _unpacked(name, packed) for name in packed if not name.endswith(SCALE)}
    known = set(asdict(CheckpointMeta()))
    extra = {key: value for key, value in card.items() if key not in known}
    return weights, CheckpointMeta(**{k: v for k, v in card.items() if k in known}, extra=extra)


def _in_bytes(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix as int8, and a scale for each row."""
    scale = (values.abs().amax(dim=1, keepdim=True) / 127).clamp_min(1e-8)
    return (values / scale).round().to(torch.int8).contiguous(), scale.contiguous()


def _in_half_bytes(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix as uint8, two neighbours in each, and a scale for each group of a row: [rows, groups]."""
    groups = values.view(len(values), -1, GROUP)
    scale = (groups.abs().amax(dim=2) / 7).half().clamp_min(1e-7)
    steps = (groups / scale.float().unsqueeze(2)).round().clamp(-8, 7) + 8
    low, high = steps.to(torch.uint8).view(len(values), -1, 2).unbind(2)
    return low | high << 4, scale


def _unpacked(name: str, packed: Mapping[str, torch.Tensor]) -> torch.Tensor:
    values, scale = packed[name], packed.get(name + SCALE)
    if scale is None:
        return values.float()
    if values.dtype == torch.int8:
        return values.float() * scale
    steps = torch.stack([values & 15, values >> 4], dim=2).view(*scale.shape, GROUP).float() - 8
    return (steps * scale.float().unsqueeze(2)).flatten(1)
