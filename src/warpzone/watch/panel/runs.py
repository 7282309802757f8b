"""What the panel knows about the runs below one folder, read only from their files."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from warpzone.watch.jsonl import Record, json_file, parse_lines, read_records, without_rewound
from warpzone.watch.metrics import METRICS_FILE

Columns = dict[str, list[Any]]

CURVES = (
    *("update", "global_step", "elapsed_s", "avg_return", "recent_return_p50", "recent_return_p90"),
    *("clear_rate", "clear_rate_mean", "clear_rate_noisy", "entropy", "learning_rate"),
    *("loss_total", "loss_policy", "loss_value", "loss_per"),
    *("env_steps_per_sec", "collect_share", "learn_share", "grad_norm", "approx_kl"),
    *("explained_variance", "policy_lag", "loss_teacher", "env_mean_x_pos", "env_max_x_pos"),
)
"""Fields that the page plots."""
MASTER_FILE = "master.json"
"""In a folder of runs that `warpzone master` made: how far it is."""
MOST_POINTS = 600
MOST_KEPT = 20_000
LOG_BYTES = 48 << 10
EPISODE_BYTES = 48 << 10
EPISODES_SHOWN = 40
VIDEOS_SHOWN = 24
VIDEO_KINDS = {".mp4": "video/mp4", ".gif": "image/gif"}
ALIVE_S = 25.0
"""A heartbeat comes every ten seconds; one this old means that the process is gone."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+ -]{0,99}")


def is_plain_name(name: str) -> bool:
    """Whether a name can only refer to something directly inside a folder."""
    return _NAME.fullmatch(name) is not None and not name.endswith((".", " "))


def tail(path: Path, most_bytes: int) -> bytes:
    """Whole lines at the end of a file; nothing if it can't be read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - most_bytes))
            data = file.read(most_bytes)
    except OSError:
        return b""
    return data.partition(b"\n")[2] if size > most_bytes else data


def last_record(path: Path, most_bytes: int = 8 << 10) -> Record:
    """The last record in the file; an empty one if there is none."""
    records = list(parse_lines(tail(path, most_bytes).splitlines()))
    return records[-1] if records else {}


def newest_files(folder: Path, is_shown: Callable[[str], bool], most: int) -> list[dict[str, Any]]:
    """Name, size and time of the files of a folder, newest first."""
    found: list[tuple[float, str, int]] = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if is_shown(entry.name) and entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                found.append((stat.st_mtime, entry.name, stat.st_size))
    newest = sorted(found, reverse=True)[:most]
    return [{"name": name, "bytes": size, "timestamp": when} for when, name, size in newest]


def thinned(records: list[Record], most: int = MOST_POINTS) -> list[Record]:
    """At most about this many records, evenly spaced, including the last."""
    every = max(1, -(-len(records) // most))
    return records[len(records) - 1 :: -every][::-1] if records else []


def as_columns(records: list[Record]) -> Columns:
    """Records as lists by field, numbers rounded for display."""
    return {name: [_short(record.get(name)) for record in records] for name in CURVES}


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}") if abs(value) < 1e5 else round(value)
    if isinstance(value, dict):
        return {str(k): _short(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_short(v) for v in value]
    return value


class RunReader:
    """Follows one run: each `refresh` reads what was written since the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[Record] = []
        self.total = 0
        """Records seen so far; grows by one with each."""
        self.epoch = 0
        """Changes when records already sent no longer hold, as after a resume."""
        self.last: Record = {}
        self._at = 0
        self._inode = -1
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read the records added to the metrics. Any thread may call it."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        path = self.folder / METRICS_FILE
        try:
            stat = path.stat()
        except OSError:
            return
        if stat.st_ino != self._inode or stat.st_size < self._at:
            self._begin(path, stat.st_ino, stat.st_size)
            return
        if stat.st_size == self._at:
            return
        with path.open("rb") as file:
            file.seek(self._at)
            data = file.read(stat.st_size - self._at)
        whole, newline, _ = data.rpartition(b"\n")
        if newline:
            self._at += len(whole) + 1
            for record in parse_lines(whole.splitlines()):
                self._add(record)

    def _begin(self, path: Path, inode: int, size: int) -> None:
        self._inode, self._at = inode, size
        self.records = [_slim(r) for r in without_rewound(read_records(path))]
        self.total = len(self.records)
        self.epoch += 1
        self.last = last_record(path) or self.last
        self._halve()

    def _add(self, record: Record) -> None:
        update = record.get("update")
        while self.records and isinstance(update, int) and (self.records[-1].get("update") or 0) >= update:
            self.records.pop()
            self.epoch += 1
        self.records.append(_slim(record))
        self.total += 1
        self.last = record
        self._halve()

    def _halve(self) -> None:
        if len(self.records) > MOST_KEPT:
            self.records = self.records[1::2]

    def curves(self) -> Columns:
        return as_columns(thinned(self.records))

    def curves_since(self, total: int) -> Columns:
        """The records after the first `total`."""
        new = self.total - total
        return as_columns(self.records[-new:] if new > 0 else [])

    def status(self) -> dict[str, Any]:
        """The current status of the run."""
        beat = self._heartbeat()
        last = {name: value for name, value in self.last.items() if name not in ("clear_rate", "stage_share")}
        return {
            "name": self.folder.name,
            "state": run_state(beat, bool(self.records)),
            "last": {name: _short(value) for name, value in last.items()},
            "clear_rate": _short(self.last.get("clear_rate") or {}),
            "stage_share": _short(self.last.get("stage_share") or {}),
            "heartbeat": {name: _short(value) for name, value in beat.items()},
            "control": json_file(self.folder / "control_state.json"),
            "checkpoint": self._checkpoint(),
        }

    def _checkpoint(self) -> dict[str, Any]:
        meta = json_file(self.folder / "checkpoints" / "latest.json")
        known = ("global_update", "global_step", "created_unix_s")
        return {name: meta.get(name) for name in known} if meta else {}

    def episodes(self) -> list[Record]:
        """The most recent episodes, newest first."""
        found = list(parse_lines(tail(self.folder / "episodes.jsonl", EPISODE_BYTES).splitlines()))
        return [_short(record) for record in found[-EPISODES_SHOWN:]][::-1]

    def log(self) -> str:
        """The end of the run's log."""
        return tail(self.folder / "train.log", LOG_BYTES).decode("utf-8", "replace")

    def videos(self) -> list[dict[str, Any]]:
        """Videos in the run's folder, newest first."""
        return newest_files(self.folder / "videos", _is_video, VIDEOS_SHOWN)

    def summary(self) -> dict[str, Any]:
        """The run in a list of runs, from the ends of its files."""
        last = last_record(self.folder / METRICS_FILE)
        return {
            "name": self.folder.name,
            "state": run_state(self._heartbeat(), bool(last)),
            "update": last.get("update"),
            "clear_rate_mean": last.get("clear_rate_mean"),
        }

    def _heartbeat(self) -> Record:
        return last_record(self.folder / "heartbeat.jsonl", 4 << 10)


def _is_video(name: str) -> bool:
    return is_plain_name(name) and Path(name).suffix in VIDEO_KINDS


def _slim(record: Record) -> Record:
    return {name: record.get(name) for name in CURVES}


def run_state(beat: Record, has_records: bool) -> str:
    """running, paused, stalled, finished or silent."""
    if not beat:
        return "silent" if has_records else "empty"
    if beat.get("phase") == "closed":
        return "finished"
    age_s = time.time() - float(beat.get("timestamp") or 0)
    if age_s > ALIVE_S:
        return "silent"
    if beat.get("stalled"):
        return "stalled"
    return "paused" if beat.get("phase") == "paused" else "running"


class Runs:
    """The runs below a folder. No name leads out of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._readers: dict[str, RunReader] = {}

    def names(self) -> list[str]:
        """Runs, the most recently written first."""
        found: list[tuple[float, str]] = []
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                if is_plain_name(entry.name) and entry.is_dir(follow_symlinks=False):
                    files = [Path(entry.path) / name for name in (METRICS_FILE, "config.json")]
                    found += [(max(map(_mtime, files)), entry.name)]
        return [name for when, name in sorted(found, reverse=True) if when]

    def reader(self, name: str) -> RunReader | None:
        """The follower of the run of this name; None if there is no such run."""
        folder = self.folder / name
        if not is_plain_name(name) or folder.is_symlink() or not folder.is_dir():
            return None
        if not ((folder / "config.json").is_file() or (folder / METRICS_FILE).is_file()):
            return None
        return self._readers.setdefault(name, RunReader(folder))

    def video(self, run: str, name: str) -> Path | None:
        """A video of a run; None if there is no such file inside the run's own folder."""
        reader = self.reader(run)
        if reader is None or not _is_video(name):
            return None
        path = reader.folder / "videos" / name
        inside = path.is_file() and path.resolve().is_relative_to(self.folder)
        return path if inside and not path.is_symlink() else None


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
