"""`metrics.jsonl`: one record per log interval with every field of the contract."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpzone.errors import ConfigError
from warpzone.watch.fields import FIELDS
from warpzone.watch.jsonl import ROTATE_BYTES, JsonLines, Record, plain, read_records, without_rewound
from warpzone.watch.tables import write_parquet

METRICS_FILE = "metrics.jsonl"
OUTCOME_FILE = "outcome.json"
"""How a run's last session ended."""
LATEST_PARQUET = Path("metrics") / "latest.parquet"
LATEST_RECORDS = 10_000
_PARQUET_EVERY_S = 30.0
# Maximum share of the run's time spent on the Parquet file, however slow the disk.
_PARQUET_SHARE = 0.005

Sink = Callable[[Record], None]


class MetricsWriter:
    """Completes records and hands them to the run's files and to `sinks` (TensorBoard, W&B, the panel).

    Any thread may write. `metrics/latest.parquet` holds the most recent 10,000 records and is updated
    at intervals and on `close`.
    """

    def __init__(
        self, run_folder: Path, *, sinks: Sequence[Sink] = (), rotate_bytes: int = ROTATE_BYTES
    ) -> None:
        self._lines = JsonLines(run_folder / METRICS_FILE, rotate_bytes=rotate_bytes)
        self._sinks = tuple(sinks)
        self._parquet = run_folder / LATEST_PARQUET
        # A file that was rotated holds more than `latest.parquet` shows, so older ones need not be read.
        earlier = read_records(run_folder / METRICS_FILE, rotated_files=1)
        self._recent: deque[Record] = deque(earlier, maxlen=LATEST_RECORDS)
        self._lock = threading.Lock()
        self._next_parquet_s = 0.0
        self._has_warned = False

    def write(self, values: Mapping[str, Any]) -> Record:
        """Append a record and return it: the contract's fields in their order, then any others."""
        record = complete_record(values)
        self._lines.write(record)
        with self._lock:
            self._recent.append(record)
            for sink in self._sinks:
                sink(record)
            if time.monotonic() >= self._next_parquet_s:
                self._write_parquet()
        return record

    def close(self) -> None:
        with self._lock:
            self._write_parquet()
        self._lines.close()

    def _write_parquet(self) -> None:
        started = time.monotonic()
        try:
            write_parquet(without_rewound(iter(self._recent)), self._parquet)
        except (OSError, ConfigError) as error:
            if not self._has_warned:
                reason = getattr(error, "strerror", None) or error
                print(f"[train][warn] cannot write {self._parquet} ({reason})")
            self._has_warned = True
        finished = time.monotonic()
        self._next_parquet_s = finished + max(_PARQUET_EVERY_S, (finished - started) / _PARQUET_SHARE)


def complete_record(values: Mapping[str, Any]) -> Record:
    """Every field of the contract, null where `values` has none; the time of writing where it has no timestamp."""
    record: Record = dict.fromkeys(FIELDS)
    record["timestamp"] = time.time()
    record.update({key: plain(value) for key, value in values.items()})
    return record


def read_metrics(run_folder: Path) -> list[Record]:
    """The history of a run, without updates that a resumed run repeated."""
    return without_rewound(read_records(run_folder / METRICS_FILE))
