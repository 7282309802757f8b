"""Levels as small JSON files."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from warpzone.errors import ConfigError, nearest
from warpzone.levels.format import Enemy, Exit, Header, Object
from warpzone.levels.kinds import AreaType, EnemyKind, ObjectKind
from warpzone.levels.level import Level

FORMAT = "warpzone-level-1"
LARGEST_FILE = 1 << 20
"""Bytes; 127 objects and as many enemies need far less."""


def to_json(level: Level) -> str:
    """The level as text: one line for each object and enemy."""
    head = {
        "format": FORMAT, "name": level.name, "type": level.type.name.lower(), "stage": level.stage,
        "number": level.number, "header": asdict(level.header),
    }  # fmt: skip
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, items in (("objects", level.objects), ("enemies", level.enemies)):
        lines = ",\n  ".join(json.dumps(_entry(item)) for item in items)
        parts.append(f'"{key}": [\n  {lines}\n ]' if lines else f'"{key}": []')
    return "{" + ",\n ".join(parts) + "}\n"


def _entry(item: Object | Enemy | Exit) -> dict[str, Any]:
    if isinstance(item, Exit):
        return {"kind": "exit"} | {f.name: getattr(item, f.name) for f in fields(item) if f.name != "row"}
    kind = item.kind.value if isinstance(item, Object) else _enemy_name(item.kind)
    rest = {f.name: getattr(item, f.name) for f in fields(item) if f.name not in ("kind", "column")}
    return {"kind": kind, "column": item.column} | {name: value for name, value in rest.items() if value}


def _enemy_name(kind: EnemyKind) -> str:
    return kind.name.lower().replace("_", " ")


_OBJECTS = {kind.value: kind for kind in ObjectKind}
_ENEMIES = {_enemy_name(kind): kind for kind in EnemyKind}
_TYPES = {kind.name.lower(): kind for kind in AreaType}


def from_json(text: str | bytes) -> Level:
    """The level in a text of `to_json`, or one written by hand."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The level is not JSON: {error}.") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigError(f'The file is not a level: it has no "format": "{FORMAT}".')
    known = {"format", "name", "type", "stage", "number", "header", "objects", "enemies"}
    _only(data, known, "level")
    header = data.get("header", {})
    if not isinstance(header, dict):
        raise ConfigError("The header of a level is an object with names.")
    _only(header, {f.name for f in fields(Header)}, "header of a level")
    return Level(
        objects=tuple(_object(entry) for entry in _entries(data, "objects")),
        enemies=tuple(_enemy(entry) for entry in _entries(data, "enemies")),
        header=Header(**header), type=_chosen(data.get("type", "ground"), _TYPES, "type of area"),
        stage=data.get("stage", "1-1"), number=data.get("number", 0), name=data.get("name", ""),
    )  # fmt: skip


def _only(data: dict[str, Any], known: set[str], what: str) -> None:
    for key in data:
        if key not in known:
            meant = nearest(key, known)
            raise ConfigError(f"A {what} has no {key!r}{f': did you mean {meant!r}?' if meant else '.'}")


def _entries(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = data.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"The {key} of a level are a list, each with a kind and a column.")
    if len(entries) > 256:
        raise ConfigError(
            f"A level with {len(entries)} {key} does not fit: the game reads 256 bytes of them."
        )
    return entries


def _chosen(value: Any, known: dict[str, Any], what: str) -> Any:
    if not isinstance(value, str) or value not in known:
        meant = nearest(value, known) if isinstance(value, str) else None
        raise ConfigError(f"There is no {what} {value!r}{f': did you mean {meant!r}?' if meant else '.'}")
    return known[value]


def _object(entry: dict[str, Any]) -> Object:
    _only(entry, {f.name for f in fields(Object)}, "level object")
    return Object(
        **entry | {"kind": _chosen(entry.get("kind"), _OBJECTS, "level object"), "column": _column(entry)}
    )


def _enemy(entry: dict[str, Any]) -> Enemy | Exit:
    if entry.get("kind") == "exit":
        rest = {key: value for key, value in entry.items() if key != "kind"}
        _only(rest, {f.name for f in fields(Exit)} - {"row"}, "exit")
        return Exit(**rest | {"column": _column(entry), "area": entry.get("area", -1)})
    _only(entry, {f.name for f in fields(Enemy)}, "enemy")
    return Enemy(**entry | {"kind": _chosen(entry.get("kind"), _ENEMIES, "enemy"), "column": _column(entry)})


def _column(entry: dict[str, Any]) -> Any:
    if "column" not in entry:
        raise ConfigError(f"A level has a {entry.get('kind')} without a column.")
    return entry["column"]


def save(level: Level, path: str | os.PathLike[str]) -> None:
    """Write the level to a file."""
    try:
        Path(path).write_text(to_json(level), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The level can't be written to {path}: {error.strerror}.") from error


def load(path: str | os.PathLike[str]) -> Level:
    """The level in a file."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"The level {path} can't be read: {error.strerror}.") from error
    if len(text) > LARGEST_FILE:
        raise ConfigError(f"{path} is too large for a level.")
    try:
        return from_json(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
