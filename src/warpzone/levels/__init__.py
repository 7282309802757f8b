"""The game's levels: read from the ROM, built by hand, drawn, generated, saved."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpzone.levels.drawing import blocks, draw, text
    from warpzone.levels.files import from_json, load, save, to_json
    from warpzone.levels.format import Enemy, Exit, Header, Object, encode
    from warpzone.levels.generator import generate
    from warpzone.levels.kinds import AreaType, EnemyKind, ObjectKind
    from warpzone.levels.level import Level, decode
    from warpzone.levels.tables import all_areas

_FROM = {
    "all_areas": "tables", "Level": "level", "decode": "level",
    "blocks": "drawing", "draw": "drawing", "text": "drawing",
    "generate": "generator", "from_json": "files", "load": "files", "save": "files", "to_json": "files",
    "Enemy": "format", "Exit": "format", "Header": "format", "Object": "format", "encode": "format",
    "AreaType": "kinds", "EnemyKind": "kinds", "ObjectKind": "kinds",
}  # fmt: skip
__all__ = [
    "AreaType",
    "Enemy",
    "EnemyKind",
    "Exit",
    "Header",
    "Level",
    "Object",
    "ObjectKind",
    "all_areas",
    "blocks",
    "decode",
    "draw",
    "encode",
    "from_json",
    "generate",
    "load",
    "save",
    "text",
    "to_json",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: the environments need only the format."""
    if name not in _FROM:
        raise AttributeError(f"module 'warpzone.levels' has no attribute {name!r}")
    return getattr(import_module(f"warpzone.levels.{_FROM[name]}"), name)
