"""Log of an environment's start as JSON lines: one line per stage, so that a failed start shows how far it came."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

STAGES = ("start", "patch", "import", "make", "done")
"""In this order. `error` follows the stage that failed."""


def diagnostics_folder(wanted: str = "") -> Path:
    """The folder for start logs: `wanted`, or a new one in the temporary folder."""
    if not wanted:
        return Path(tempfile.mkdtemp(prefix=f"mario_env_diag_{os.getpid()}_{int(time.time())}_"))
    folder = Path(wanted).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class StartLog:
    """Appends to the log of one environment; each line is on disk before the next stage begins."""

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


def read_start_log(folder: Path, index: int, pid: int | None = None) -> list[dict[str, Any]]:
    """The lines of an environment, or of one of its processes, in order; an incomplete line is left out."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"worker_{index:03d}_pid{pid if pid is not None else '*'}.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    return found
