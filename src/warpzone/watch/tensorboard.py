"""TensorBoard: the metrics as curves. A folder that cannot be written causes one warning and never ends the run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpzone.extras import what_to_install
from warpzone.watch.fields import GROUP_OF
from warpzone.watch.jsonl import Record


class TensorBoardLog:
    """A sink for `MetricsWriter`. Curves are over `global_step`, stages under `clear_rate/<stage>`."""

    def __init__(self, writer: Any, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = writer

    def __call__(self, record: Record) -> None:
        if self._writer is None:
            return
        step = record.get("global_step") or 0
        try:
            for name, value in record.items():
                if name in ("timestamp", "global_step"):
                    continue
                if isinstance(value, dict):
                    for key, item in value.items():
                        self._writer.add_scalar(f"{name}/{key}", item, step)
                elif isinstance(value, bool | int | float):
                    self._writer.add_scalar(f"{GROUP_OF.get(name, 'more')}/{name}", value, step)
        except OSError as error:
            print(
                f"[train][warn] tensorboard stopped: cannot write {self.folder} ({error.strerror or error})"
            )
            self._writer = None

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def open_tensorboard(
    folder: Path, *, resume_step: int | None = None, say: Callable[[str], None] = print
) -> TensorBoardLog | None:
    """Start logging to `folder` and say where; None, after one warning, where that is not possible.

    A resumed run passes the `global_step` it resumes from, and curves past it are replaced.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # SummaryWriter opens its file in its own thread and would leave an empty folder behind.
        with tempfile.TemporaryFile(dir=folder):
            pass
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(log_dir=str(folder), purge_step=resume_step)
        writer.add_text("meta/started", time.strftime("%Y-%m-%d %H:%M:%S"), resume_step or 0)
        writer.flush()
    except ImportError as error:
        say(f"[train][warn] no tensorboard: {what_to_install(error, 'it') or error}")
        return None
    except OSError as error:
        reason = error.strerror or error
        say(f"[train][warn] no tensorboard: cannot write {folder} ({reason})")
        return None
    say(f"[train][log] tensorboard_log_dir={folder}")
    return TensorBoardLog(writer, folder)
