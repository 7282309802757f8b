"""An agent to give away: its weights as safetensors, and beside them a card in JSON that says what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from warpzone.errors import CheckpointError
from warpzone.run.sidecar import CheckpointMeta

SUFFIX = ".safetensors"
LARGE = 1 << 20
"""Elements from which on a matrix is kept in bytes."""
SCALE = ".scale"
_KEPT = ("view", "model", "stage", "reward")


def save_weights(
    path: Path, weights: Mapping[str, torch.Tensor], meta: CheckpointMeta, card: Mapping[str, Any]
) -> Path:
    """Write `path` and its card: half precision, and the one large matrix in bytes with a scale for each row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        values = tensor.detach().cpu().float()
        if values.dim() == 2 and values.numel() >= LARGE:
            scale = (values.abs().amax(dim=1, keepdim=True) / 127).clamp_min(1e-8)
            packed[name] = (values / scale).round().to(torch.int8).contiguous()
            packed[name + SCALE] = scale.contiguous()
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


def _unpacked(name: str, packed: Mapping[str, torch.Tensor]) -> torch.Tensor:
    values = packed[name].float()
    return values * packed[name + SCALE] if name + SCALE in packed else values
