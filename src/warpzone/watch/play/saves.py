"""Files saved from the page: replays and starts in one folder. No name leads out of it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from warpzone.envs.replays import Replay, load_replay, play_back
from warpzone.errors import ConfigError
from warpzone.watch.durable import write_durably
from warpzone.watch.panel.runs import is_plain_name, newest_files

KINDS = ("replay", "start")
SHOWN = 40
MOST_SAVES = 1000
LONGEST_NAME = 60


class Saves:
    """The files NAME.replay.json and NAME.start.json of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()

    def listed(self) -> list[dict[str, Any]]:
        """The newest files first."""
        return newest_files(self.folder, _is_save, SHOWN)

    def path(self, name: str) -> Path | None:
        """The file of this name; None if there is none that was saved here."""
        path = self.folder / name
        if not _is_save(name) or path.is_symlink() or not path.is_file():
            return None
        return path

    def load(self, name: str) -> Replay:
        """The replay of this name."""
        path = self.path(name)
        if path is None:
            raise ConfigError("There is no such file among those saved.")
        return load_replay(path)

    def write(self, replay: Replay, rom: bytes, kind: str, name: str = "") -> str:
        """Play it again and, if the RAM is the same, save it under a free name. Returns that name."""
        if kind not in KINDS:
            raise ConfigError(f"There is no kind {kind[:20]!r}: choose {' or '.join(KINDS)}.")
        if name and (len(name) > LONGEST_NAME or not is_plain_name(name)):
            raise ConfigError(
                "A name has letters, digits, spaces and . _ + - only, and starts with a letter."
            )
        play_back(replay, rom)
        x = replay.telemetry.get("x_pos", 0)
        stem = name or f"{replay.stage}_x{x:04d}_{time.strftime('%Y%m%d-%H%M%S')}"
        with self._lock:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                if len(newest_files(self.folder, _is_save, MOST_SAVES)) >= MOST_SAVES:
                    raise ConfigError(f"{self.folder} is full: {MOST_SAVES} files are saved there.")
                path = self.folder / f"{stem}.{kind}.json"
                number = 1
                while os.path.lexists(path):
                    number += 1
                    path = self.folder / f"{stem}-{number}.{kind}.json"
                write_durably(path, replay.to_json())
            except OSError as error:
                reason = error.strerror or error
                raise ConfigError(f"Nothing can be saved in {self.folder}: {reason}.") from None
        return path.name


def _is_save(name: str) -> bool:
    return is_plain_name(name) and name.endswith(tuple(f".{kind}.json" for kind in KINDS))
