"""The stages of an environment's start as JSON lines, so that a start that failed tells how far it came."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

STAGES = ("start", "patch", "import", "make", "done")
"""In this order. `error` follows the stage that failed."""


def diagnostics_folder(wanted: str = "") -> Path:
    """The folder for logs of starts: the one asked for, or a new one below the temporary folder."""
    if wanted:
        folder = Path(wanted).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return Path(tempfile.mkdtemp(prefix=f"mario_env_diag_{os.getpid()}_{int(time.time())}_"))


class MarkWriter:
    """Appends marks to the log of one environment; each line is there before the next stage begins."""

    def __init__(self, folder: Path, index: int) -> None:
        self.path = folder / f"worker_{index:03d}_pid{os.getpid()}.jsonl"
        self._index = index
        self._began = time.monotonic()

    def __call__(self, stage: str, **details: Any) -> None:
        line = {
            "time": time.time(),
            "worker": self._index,
            "pid": os.getpid(),
            "mark": stage,
            "since_start_s": round(time.monotonic() - self._began, 4),
            **details,
        }
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_marks(folder: Path, index: int, pid: int | None = None) -> list[dict[str, Any]]:
    """The marks of an environment, or of one of its processes, in order; a line cut off in the middle is left out."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"worker_{index:03d}_pid{pid if pid is not None else '*'}.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


def last_stage(folder: Path, index: int, pid: int) -> str:
    """The last stage of its start that a process reached; empty if it never began."""
    stages = [mark["mark"] for mark in read_marks(folder, index, pid) if mark["mark"] in STAGES]
    return stages[-1] if stages else ""
