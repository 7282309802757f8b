"""Whether a checkpoint fits: its architecture and ROM, and the names and shapes of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch

from warpzone.checkpoints.finding import ResumeSource
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.envs.config import StageConfig
from warpzone.errors import CheckpointError

_COMPILED = "_orig_mod."


def check_fits(source: ResumeSource, *, architecture: Mapping[str, Any], rom_sha256: str | None) -> None:
    """Refuse a checkpoint of another model or cartridge, in one sentence."""
    theirs = {**_value_stages(source.meta), **source.meta.architecture} if source.meta.architecture else {}
    # Settings come and go: one that is missing on a side is off there.
    differing = sorted(
        k
        for k in {*theirs, *architecture}
        if (theirs.get(k) or None) != (_as_json(architecture.get(k)) or None)
    )
    if theirs and differing:
        shown = ", ".join(
            f"{k} is {theirs.get(k)!r} there and {_as_json(architecture.get(k))!r} here"
            for k in differing[:3]
        )
        raise CheckpointError(
            f"{source.path} is of another architecture ({shown}); use --fresh or the same settings"
        )
    if source.meta.rom_sha256 and rom_sha256 and source.meta.rom_sha256 != rom_sha256:
        raise CheckpointError(
            f"{source.path} was trained on another ROM (sha256 {source.meta.rom_sha256[:12]}..., "
            f"this one is {rom_sha256[:12]}...); pass that ROM with --rom or use --fresh"
        )


def _value_stages(meta: CheckpointMeta) -> dict[str, Any]:
    """The stages of the value heads, for checkpoints that do not record them: those of the run."""
    saved = meta.config.get("stage", {})
    if meta.architecture.get("value_heads", 1) == 1 or not isinstance(saved, Mapping):
        return {}
    known = {field.name for field in fields(StageConfig)}
    return {"value_stages": StageConfig(**{k: v for k, v in saved.items() if k in known}).names()}


@dataclass(frozen=True)
class Fit:
    """Saved weights under the names a model uses, and everything that did not fit."""

    weights: dict[str, torch.Tensor]
    """Ready for `load_state_dict(weights, strict=False)`."""
    missing: tuple[str, ...]
    """Names the model has and the checkpoint has not; they keep their initial values."""
    unexpected: tuple[str, ...]
    """Names the checkpoint has and the model has not; they are not used."""
    renamed: int
    """Names that differ only by the prefix torch.compile adds."""

    def report(self) -> list[str]:
        """One line per difference, for the log."""
        lines = []
        if self.renamed:
            lines.append(f"[train] {self.renamed} names mapped between the compiled and the plain model")
        lines += [f"[train][warn] not in the checkpoint, keeps its initial value: {n}" for n in self.missing]
        return lines + [f"[train][warn] in the checkpoint only, not used: {n}" for n in self.unexpected]


def fit_weights(
    saved: Mapping[str, Any], model: Mapping[str, torch.Tensor], name: str = "the checkpoint"
) -> Fit:
    """Bring `saved` under the names of `model` (its `state_dict()`), whichever of the two was compiled.

    Small differences are reported in the result; where a shape differs or less than half of the model is
    covered it is another architecture, and CheckpointError says so.
    """
    by_plain_name: dict[str, tuple[str, Any]] = {}
    for key, value in saved.items():
        plain = _plain(str(key))
        if plain in by_plain_name:
            raise CheckpointError(f"{name} has {plain} twice, compiled and plain; choose another checkpoint")
        by_plain_name[plain] = (str(key), value)

    weights: dict[str, torch.Tensor] = {}
    missing, misfits, renamed = [], [], 0
    for key, wanted in model.items():
        key_saved, value = by_plain_name.pop(_plain(key), (key, None))
        if not isinstance(value, torch.Tensor):
            missing.append(key)
        elif value.shape != wanted.shape:
            misfits.append(f"{key} is {list(value.shape)} there and {list(wanted.shape)} here")
        else:
            weights[key] = value
            renamed += key_saved != key
    if misfits or 2 * len(weights) < len(model):
        first = [*misfits, *(f"{key} is missing" for key in missing)][0]
        raise CheckpointError(
            f"{name} is of another architecture ({len(weights)} of {len(model)} tensors fit; {first}); "
            "use --fresh or the settings it was trained with"
        )
    return Fit(weights, tuple(missing), tuple(key for key, _ in by_plain_name.values()), renamed)


def _plain(name: str) -> str:
    # Nested compiled modules put the prefix in the middle of a name as well.
    return name.replace(_COMPILED, "")


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
