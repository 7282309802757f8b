"""An exported agent: its weights as safetensors, and a JSON card that describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from warpzone.checkpoints.sidecar import CheckpointMeta, described, parse_json
from warpzone.errors import CheckpointError

SUFFIX = ".safetensors"
Bits = Literal[4, 6, 8, 16]
LARGE = 1 << 12
"""Size from which a matrix or a layer's filters are stored in less than half precision."""
GROUP = 112
"""Neighbours in a row that share a scale where they have less than a byte. It divides the rows of nature at 84x84 and
of tiny and small at 26x32; a matrix whose rows it does not divide is kept in bytes."""
SCALE = ".scale"
TEMPERATURE = "temperature"
"""In a card: what the logits are divided by before actions are sampled, if not 1."""
_KEPT = ("view", "model", "stage", "reward")


def save_weights(
    path: Path,
    weights: Mapping[str, torch.Tensor],
    meta: CheckpointMeta,
    card: Mapping[str, Any],
    bits: Bits = 8,
) -> Path:
    """Write `path` and its card: large matrices in `bits` for each number, large filters in bytes, all else (with 16
    bits everything) in half precision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        values = tensor.detach().cpu().float()
        if bits == 16 or values.dim() < 2 or values.numel() < LARGE:
            packed[name] = values.half().contiguous()
        elif bits < 8 and values.dim() == 2 and values.shape[1] % GROUP == 0:
            packed[name], packed[name + SCALE] = _in_bits(values, bits)
        else:
            packed[name], packed[name + SCALE] = _in_bytes(values)
    save_file(packed, str(path))
    config = {name: dict(meta.config[name]) for name in _KEPT if name in meta.config}
    if "rom" in config.get("stage", {}):
        config["stage"]["rom"] = ""  # a path of one machine; the hash below says which it was
    document = {
        "global_step": meta.global_step,
        "global_update": meta.global_update,
        "config": config,
        "architecture": meta.architecture,
        "rom_sha256": meta.rom_sha256,
        "clear_rate": meta.clear_rate,
        **card,
    }
    path.with_suffix(".json").write_text(json.dumps(document, indent=2) + "\n")
    return path


def load_weights(path: Path) -> tuple[dict[str, torch.Tensor], CheckpointMeta]:
    """Read weights and card. Raises CheckpointError; no code in the files is executed."""
    meta = read_card(path)
    try:
        packed = load_file(str(path))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be read ({error}): choose another agent.") from error
    return {name: _unpacked(name, packed) for name in packed if not name.endswith(SCALE)}, meta


def read_card(path: Path) -> CheckpointMeta:
    """The metadata of the agent in `path`, without its weights."""
    card = path.with_suffix(".json")
    try:
        data = card.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{card} can't be read ({error.strerror}): choose another agent.") from error
    document = parse_json(data, str(card))
    known = {field.name for field in fields(CheckpointMeta)}
    extra = {key: value for key, value in document.items() if key not in known}
    return replace(described(document, str(card)).meta, extra=extra)


def _in_bytes(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As int8, and a scale for each row or filter."""
    largest = values.abs().amax(dim=tuple(range(1, values.dim())), keepdim=True)
    scale = (largest / 127).clamp_min(1e-8)
    return (values / scale).round().to(torch.int8).contiguous(), scale.contiguous()


def _in_bits(values: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix as uint8, its rows a stream of `bits` each, and a scale for each group of a row: [rows, groups]."""
    top = 2 ** (bits - 1) - 1
    groups = values.view(len(values), -1, GROUP)
    scale = (groups.abs().amax(dim=2) / top).half().clamp_min(1e-7)
    steps = (groups / scale.float().unsqueeze(2)).round().clamp(-top - 1, top) + (top + 1)
    as_bits = np.unpackbits(steps.to(torch.uint8).view(*values.shape, 1).numpy(), axis=2)[:, :, -bits:]
    return torch.from_numpy(np.packbits(as_bits.reshape(len(values), -1), axis=1)), scale


def _unpacked(name: str, packed: Mapping[str, torch.Tensor]) -> torch.Tensor:
    values, scale = packed[name], packed.get(name + SCALE)
    if scale is None:
        return values.float()
    if values.dtype == torch.int8:
        return values.float() * scale
    rows, columns = len(values), scale.shape[1] * GROUP
    bits = 8 * values.shape[1] // columns
    as_bits = np.unpackbits(values.numpy(), axis=1)[:, : columns * bits].reshape(rows, columns, bits)
    steps = torch.from_numpy(as_bits @ 2.0 ** np.arange(bits - 1, -1, -1)).float() - 2 ** (bits - 1)
    unpacked: torch.Tensor = steps.view(*scale.shape, GROUP) * scale.float().unsqueeze(2)
    return unpacked.flatten(1)
