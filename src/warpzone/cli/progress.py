"""Progress of a command: bars on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

LINE_EVERY_S = 10.0


class Bars(Progress):
    """Bars that vanish when they are done. Where they can't be drawn, `[command] task: 3 of 8 stages` is printed."""

    def __init__(self, command: str, units: str, console: Console | None = None) -> None:
        super().__init__(console=console, transient=True)
        self._command, self._units = command, units
        self._said_s = time.monotonic()

    def update(self, task_id: TaskID, *args: Any, **changes: Any) -> None:
        super().update(task_id, *args, **changes)
        if self.console.is_terminal or time.monotonic() - self._said_s < LINE_EVERY_S:
            return
        self._said_s = time.monotonic()
        task = next(task for task in self.tasks if task.id == task_id)
        of = "" if task.total is None else f" of {task.total:,.0f}"
        print(
            f"[{self._command}] {task.description}: {task.completed:,.0f}{of} {task.fields.get('units', self._units)}",
            flush=True,
        )
