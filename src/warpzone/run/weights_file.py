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
_KEPT = ("view", "model", "stage", "reward")


def save_weights(
    path: Path, weights: Mapping[str, torch.Tensor], meta: CheckpointMeta, card: Mapping[str, Any]
) -> Path:
    """Write `path` and its card. Half precision: a policy trained with autocast loses nothing it ever used."""
    path.parent.mkdir(parents=True, exist_ok=True)
    halves = {name: tensor.detach().cpu().half().contiguous() for name, tensor in weights.items()}
    save_file(halves, str(path))
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
        weights = {name: tensor.float() for name, tensor in load_file(str(path)).items()}
        card = json.loads(path.with_suffix(".json").read_text())
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} or its card can't be read ({error}): choose another agent.") from error
    known = set(asdict(CheckpointMeta()))
    extra = {key: value for key, value in card.items() if key not in known}
    return weights, CheckpointMeta(**{k: v for k, v in card.items() if k in known}, extra=extra)
