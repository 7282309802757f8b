"""Metrics as tables: Parquet with typed columns, and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from warpzone.errors import ConfigError
from warpzone.extras import what_to_install
from warpzone.watch.durable import pending_file
from warpzone.watch.fields import FIELDS, KINDS
from warpzone.watch.jsonl import Record

if TYPE_CHECKING:
    import pyarrow as pa


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """Replace `path` with a table with one row per record; a reader never sees half of it.

    Raises ConfigError where pyarrow can't be imported.
    """
    table = metrics_table(records)
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    with pending_file(path) as pending:
        buffer = io.BytesIO()
        parquet.write_table(table, buffer, compression="zstd")
        pending.write(buffer.getbuffer())
        pending.commit()


def metrics_table(records: Sequence[Record]) -> pa.Table:
    """All contract fields, then any further numeric field as a float column. `clear_rate` is a map by stage."""
    try:
        import pyarrow as pa
    except ImportError as error:
        # pip does not know that newer versions refuse NumPy 1.
        sentence = f"Parquet can't be written ({error}): with NumPy 1 install pyarrow<26."
        raise ConfigError(what_to_install(error, "Parquet") or sentence) from error
    types = {"float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}
    columns: dict[str, pa.Array] = {}
    for name in columns_of(records):
        values = [record.get(name) for record in records]
        if KINDS.get(name) == "object":
            columns[name] = pa.array([_as_pairs(v) for v in values], pa.map_(pa.string(), pa.float64()))
        elif name in KINDS:
            columns[name] = pa.array([_as_kind(v, KINDS[name]) for v in values], types[KINDS[name]])
        elif all(v is None or isinstance(v, int | float) for v in values):
            columns[name] = pa.array([_as_kind(v, "float") for v in values], pa.float64())
        else:
            columns[name] = pa.array([_as_text(v) for v in values], pa.string())
    return pa.table(columns)


def write_csv(records: Sequence[Record], file: TextIO) -> None:
    """One row per record; null is an empty cell, an object is written as JSON."""
    names = columns_of(records)
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(names)
    for record in records:
        rows.writerow([_as_text(record.get(name)) for name in names])


def columns_of(records: Sequence[Record]) -> list[str]:
    """The contract's fields in their order, then the others in the order they first appear."""
    return list(dict.fromkeys([*FIELDS, *(name for record in records for name in record)]))


def _as_kind(value: Any, kind: str) -> float | int | bool | None:
    """A value of the wrong type, as in a hand-edited file, becomes null."""
    if not isinstance(value, bool | int | float):
        return None
    if kind == "bool":
        return bool(value)
    if kind == "float":
        return float(value)
    number = int(value)
    return number if abs(number) < 2**63 else None


def _as_pairs(value: Any) -> list[tuple[str, float]] | None:
    if not isinstance(value, dict):
        return None
    return [(str(key), float(item)) for key, item in value.items() if isinstance(item, int | float)]


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
