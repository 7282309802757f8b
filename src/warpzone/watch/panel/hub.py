"""One reader of a run for all its viewers: every second, updates are serialised once and sent to each."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from warpzone.watch.panel.runs import RunReader

TICK_S = 0.5
QUEUE = 8


class Hub:
    """Follows a run while it has viewers. A viewer that can't keep up is sent everything again."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._viewers: set[asyncio.Queue[str]] = set()
        self._task: asyncio.Task[None] | None = None
        self._sent: dict[str, str] = {}
        self._total = 0
        self._epoch = -1
        self._telling = asyncio.Lock()  # who joins does so between two messages, and misses none

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    async def join(self) -> asyncio.Queue[str]:
        """A queue for a new viewer, starting with the whole state."""
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=QUEUE)
        async with self._telling:
            queue.put_nowait(await asyncio.to_thread(self._everything))
            self._viewers.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())
        return queue

    def leave(self, queue: asyncio.Queue[str]) -> None:
        """The last viewer to leave ends the reading."""
        self._viewers.discard(queue)
        if not self._viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            async with self._telling:
                message = await asyncio.to_thread(self._news)
                for queue in list(self._viewers) if message else ():
                    if queue.full():
                        while not queue.empty():
                            queue.get_nowait()
                        queue.put_nowait(await asyncio.to_thread(self._everything))
                    elif message:
                        queue.put_nowait(message)

    def _parts(self) -> dict[str, Any]:
        reader = self._reader
        with suppress(OSError):
            reader.refresh()
        return {
            "status": reader.status(),
            "episodes": reader.episodes(),
            "videos": reader.videos(),
            "log": reader.log(),
        }

    def _everything(self) -> str:
        parts, reader = self._parts(), self._reader
        counts = {"type": "all", "epoch": reader.epoch, "total": reader.total}
        return json.dumps({**counts, **parts, "curves": reader.curves()})

    def _news(self) -> str | None:
        parts, reader = self._parts(), self._reader
        if self._epoch != reader.epoch:
            self._epoch, self._total = reader.epoch, reader.total
            self._sent = {name: json.dumps(part) for name, part in parts.items()}
            return self._everything()
        news: dict[str, Any] = {}
        for name, part in parts.items():
            words = json.dumps(part)
            if words != self._sent.get(name):
                self._sent[name] = words
                news[name] = part
        if reader.total > self._total:
            news |= {"from": self._total, "curves": reader.curves_since(self._total)}
            self._total = reader.total
        if not news:
            return None
        return json.dumps({"type": "news", "epoch": reader.epoch, "total": reader.total, **news})
