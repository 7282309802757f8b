"""The agent playing right now, for any number of viewers: one thread plays, and only while there are viewers."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpzone.errors import Error

FPS = 60.0
JPEG_QUALITY = 88
RETRY_S = 2.0


@dataclass(frozen=True)
class Shown:
    """A frame of the game and the policy's outputs when it chose."""

    screen: npt.NDArray[np.uint8]
    frames: int
    """Game frames since the previous one shown."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Beside the frame: stage, action, probabilities, value, reward terms, ..."""


@dataclass
class Wish:
    """What viewers request; the exhibition reads it between episodes."""

    stage: str = ""
    stop: bool = False


Exhibition = Callable[[Path, Wish], Iterator[Shown]]
"""Plays the newest checkpoint of a run as long as frames are requested."""


def encode(shown: Shown) -> bytes:
    """Length of the facts, the facts as JSON, the frame as JPEG."""
    from PIL import Image

    picture = io.BytesIO()
    Image.fromarray(shown.screen).save(picture, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    facts = json.dumps(shown.facts, separators=(",", ":")).encode()
    return struct.pack(">I", len(facts)) + facts + picture.getvalue()


class Player:
    """Plays one run for its viewers. Every viewer has a short queue; a slow one misses frames."""

    def __init__(self, folder: Path, exhibition: Exhibition) -> None:
        self._folder = folder
        self._exhibition = exhibition
        self._viewers: set[asyncio.Queue[bytes | str]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.wish = Wish()

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    def join(self) -> asyncio.Queue[bytes | str]:
        """A queue of messages for a new viewer."""
        queue: asyncio.Queue[bytes | str] = asyncio.Queue(maxsize=4)
        self._viewers.add(queue)
        self._loop = asyncio.get_running_loop()
        if self._thread is None or not self._thread.is_alive() or self.wish.stop:
            self.wish = Wish(self.wish.stage)
            self._thread = threading.Thread(target=self._play, args=(self.wish,), name="player", daemon=True)
            self._thread.start()
        return queue

    def leave(self, queue: asyncio.Queue[bytes | str]) -> None:
        """The last viewer to leave stops the emulator."""
        self._viewers.discard(queue)
        if not self._viewers:
            self.wish.stop = True

    def _play(self, wish: Wish) -> None:
        while not wish.stop:
            try:
                due = time.monotonic()
                for shown in self._exhibition(self._folder, wish):
                    self._publish(encode(shown))
                    due = max(due + shown.frames / FPS, time.monotonic() - 0.1)
                    time.sleep(max(0.0, due - time.monotonic()))
                    if wish.stop:
                        return
            except Error as error:
                # Usually there is no checkpoint yet; one may appear.
                self._publish(json.dumps({"waiting": str(error)}))
            time.sleep(RETRY_S)

    def _publish(self, message: bytes | str) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._deliver, message)

    def _deliver(self, message: bytes | str) -> None:
        for queue in self._viewers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(message)
