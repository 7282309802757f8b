"""`train.log`: every line a run says, with its time, beside its other files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

LOG_FILE = "train.log"


class Display(Protocol):
    """Whoever shows the run to a person."""

    def update(self, record: dict[str, Any]) -> None: ...

    def say(self, line: str) -> None: ...


class Silent:
    """A display that shows nothing."""

    def update(self, record: dict[str, Any]) -> None:
        pass

    def say(self, line: str) -> None:
        pass


class LoggedDisplay:
    """Shows on another display and writes what is said to the run's log.

    Lines from before the folder exists are kept until it does; a disk that is full costs lines, not the run.
    """

    def __init__(self, shown: Display, folder: Path) -> None:
        self._shown = shown
        self._folder = folder
        self._waiting: list[str] = []

    def update(self, record: dict[str, Any]) -> None:
        self._shown.update(record)
        if self._waiting:
            self._write()

    def say(self, line: str) -> None:
        self._shown.say(line)
        self._waiting.append(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        self._write()

    def _write(self) -> None:
        if not self._folder.is_dir():
            return
        lines, self._waiting = self._waiting, []
        try:
            with (self._folder / LOG_FILE).open("a", encoding="utf-8") as file:
                file.write("".join(lines))
        except OSError:
            return
