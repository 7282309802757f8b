"""JSON lines: one writer for many threads, rotation with gzip, readers that tolerate a torn line."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from warpzone.watch.durable import pending_file

Record = dict[str, Any]
ROTATE_BYTES = 64 * 1024 * 1024
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def plain(value: Any) -> Any:
    """The value as JSON can represent it: NaN and infinity are null; scalars of numpy and torch are plain numbers."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


class JsonLines:
    """Appends records to a file, one line each, complete or not at all.

    Every record is passed to the system before `write` returns, so a killed process loses none. A file past
    `rotate_bytes` becomes `<name>.NNNN.jsonl` and is compressed in the background.
    """

    def __init__(self, path: Path, *, rotate_bytes: int = ROTATE_BYTES) -> None:
        self.path = path
        self._rotate_bytes = rotate_bytes
        self._lock = threading.Lock()
        self._compressors: list[threading.Thread] = []
        self._is_line_torn = False
        self._has_warned = False
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor: int | None = None
        self._open()
        self._compress_rotated()

    def write(self, *records: Mapping[str, Any]) -> None:
        """All at once: every call of the system lets another thread go first."""
        lines = "".join(_encode(plain(record)) + "\n" for record in records).encode()
        with self._lock:
            if self._descriptor is None:
                raise ValueError(f"{self.path} is closed")
            try:
                self._append(lines)
            except OSError as error:
                # A full disk must not end a training run; the loss is reported once.
                if not self._has_warned:
                    print(f"[train][warn] cannot write {self.path} ({error.strerror}); records are dropped")
                self._has_warned = True

    def close(self) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
        for thread in self._compressors:
            thread.join()

    def _open(self) -> None:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(self._descriptor).st_size
        self._is_line_torn = self._size > 0 and os.pread(self._descriptor, 1, self._size - 1) != b"\n"

    def _append(self, lines: bytes) -> None:
        assert self._descriptor is not None
        rest = memoryview(b"\n" + lines if self._is_line_torn else lines)
        while rest:
            written = os.write(self._descriptor, rest)
            self._size += written
            rest = rest[written:]
            self._is_line_torn = bool(rest)
        if self._size >= self._rotate_bytes:
            self._rotate()

    def _rotate(self) -> None:
        assert self._descriptor is not None
        number = max((n for n, _ in _rotated(self.path)), default=0) + 1
        os.replace(self.path, _rotated_path(self.path, number))
        os.close(self._descriptor)
        self._open()
        self._compress_rotated()

    def _compress_rotated(self) -> None:
        """Compress in the background the rotated files that a process, perhaps killed, left uncompressed."""
        plain_files = [path for _, path in _rotated(self.path) if path.suffix == ".jsonl"]
        if plain_files:
            previous = self._compressors[-1] if self._compressors else None
            thread = threading.Thread(target=_compress, args=(plain_files, previous), daemon=True)
            thread.start()
            self._compressors = [*(t for t in self._compressors if t.is_alive()), thread]


def read_records(path: Path, *, rotated_files: int | None = None) -> Iterator[Record]:
    """All records, rotated files (at most the newest `rotated_files`) first.

    Lines that are not a JSON object, as a crash leaves them, are skipped.
    """
    numbers = sorted({number for number, _ in _rotated(path)}, reverse=True)[:rotated_files]
    for number in reversed(numbers):
        with _open_rotated(path, number) as file:
            yield from parse_lines(file)
    with suppress(FileNotFoundError), path.open("rb") as file:
        yield from parse_lines(file)


def without_rewound(records: Iterator[Record]) -> list[Record]:
    """Records in the order of `update`: updates repeated by a resumed run replace the earlier ones."""
    kept: list[Record] = []
    for record in records:
        update = record.get("update")
        if isinstance(update, int):
            while kept and isinstance(kept[-1].get("update"), int) and kept[-1]["update"] >= update:
                kept.pop()
        kept.append(record)
    return kept


def parse_lines(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records among the lines."""
    for line in lines:
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def json_file(path: Path) -> Record:
    """The JSON object in a file; an empty one if there is none."""
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else {}
    return {}


def _rotated_path(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number:04d}.jsonl")


def _rotated(path: Path) -> list[tuple[int, Path]]:
    pattern = re.compile(re.escape(path.stem) + r"\.(\d{4,})\.jsonl(\.gz)?$")
    found = ((pattern.match(p.name), p) for p in path.parent.glob(f"{path.stem}.*.jsonl*"))
    return [(int(match.group(1)), p) for match, p in found if match]


def _open_rotated(path: Path, number: int) -> IO[bytes]:
    rotated = _rotated_path(path, number)
    try:
        return rotated.open("rb")
    except FileNotFoundError:
        return cast(IO[bytes], gzip.open(rotated.with_name(rotated.name + ".gz"), "rb"))


def _compress(paths: list[Path], after: threading.Thread | None) -> None:
    if after is not None:
        after.join()
    for path in paths:
        # The disk is full, or another process compressed the file: the plain one stays readable.
        with suppress(OSError):
            with path.open("rb") as source, pending_file(path.with_name(path.name + ".gz")) as pending:
                with gzip.GzipFile(fileobj=pending, mode="wb", filename=path.name) as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                pending.commit()
            path.unlink()
