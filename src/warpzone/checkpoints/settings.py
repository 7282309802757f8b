"""Settings as checkpoints, cards and run folders record them. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from warpzone import custom_code
from warpzone.errors import CheckpointError

T = TypeVar("T")


def from_json(kind: type[T], values: Mapping[str, Any]) -> T:
    """A settings dataclass from its saved form; settings that no longer exist are left out."""
    assert is_dataclass(kind)
    if not isinstance(values, Mapping):
        raise CheckpointError(f"The saved {kind.__name__} is {values!r}: choose another checkpoint.")
    known = {f.name for f in fields(kind)}
    kept = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known}
    for name in ("encoder", "reward_function"):
        custom_code.check_recorded(kept.get(name, ""))
    return kind(**kept)
