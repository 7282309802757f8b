"""The routes of the page on which a person plays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, WebSocket
from fastapi.responses import FileResponse

from warpzone.errors import ConfigError, Error
from warpzone.watch.panel.guard import Guard
from warpzone.watch.panel.server import PAGE as PANEL_PAGE
from warpzone.watch.panel.server import TOO_MANY, add_page, serve_socket
from warpzone.watch.play.cabinet import Cabinet, Seat
from warpzone.watch.play.saves import Saves

STATIC = Path(__file__).parent / "static"
PAGE = {"": STATIC / "play.html", "play.css": STATIC / "play.css", "play.js": STATIC / "play.js"}
MOST_VIEWERS = 16


def create_app(cabinet: Cabinet, saves: Saves, *, access_token: str = "") -> Any:
    """The page of one emulator, as an ASGI application."""
    app = FastAPI(title="warpzone play", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.cabinet = cabinet

    @app.websocket("/api/play")
    async def play(socket: WebSocket) -> None:
        if cabinet.viewers >= MOST_VIEWERS:
            await socket.close(TOO_MANY)
            return
        await socket.accept()
        seat = cabinet.join()
        try:
            seat.tell(json.dumps({"type": "console", "stages": cabinet.stages, "region": cabinet.region}))
            seat.tell(json.dumps({"type": "saves", "folder": str(saves.folder), "saves": saves.listed()}))
            await serve_socket(socket, seat.queue, Attendant(cabinet, saves, seat).hear)
        finally:
            cabinet.leave(seat)

    @app.get("/saves/{name}")
    def saved(name: str) -> FileResponse:
        path = saves.path(name)
        if path is None:
            raise HTTPException(404, "There is no such file.")
        return FileResponse(path, media_type="application/json", filename=path.name)

    add_page(app, {**PANEL_PAGE, **PAGE})
    return Guard(app, access_token)


class Attendant:
    """Carries out a seat's requests, one at a time. Invalid messages are ignored."""

    def __init__(self, cabinet: Cabinet, saves: Saves, seat: Seat) -> None:
        self._cabinet, self._saves, self._seat = cabinet, saves, seat
        self._busy = False
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self, text: str) -> None:
        """Process a message from the page."""
        try:
            order = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(order, dict):
            return
        held = order.get("held")
        if isinstance(held, int) and not isinstance(held, bool) and 0 <= held <= 255:
            if self._cabinet.has_controls(self._seat):
                self._cabinet.hold(held)
            return
        if not isinstance(order.get("do"), str):
            return
        if not self._cabinet.has_controls(self._seat):
            self._say("Somebody else is playing: you get the controls when they leave.", good=False)
        elif order["do"] in ("pause", "resume"):
            self._cabinet.pause(order["do"] == "pause")
        elif self._busy:
            self._say("One request at a time.", good=False)
        else:
            self._busy = True
            task = asyncio.create_task(self._obey(order))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _obey(self, order: Mapping[str, Any]) -> None:
        does: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "restart": self._restart,
            "save": self._save,
            "open": self._open,
        }
        try:
            if order["do"] not in does:
                raise ConfigError(f"There is no command {order['do'][:20]!r}.")
            said, good = await asyncio.to_thread(does[order["do"]], order), True
        except Error as error:
            said, good = str(error), False
        finally:
            # With the answer, the page may ask again: only the request itself blocks others, not what follows it.
            self._busy = False
        self._say(said, good)
        if order["do"] == "save":
            self._cabinet.tell({"type": "saves", "saves": await asyncio.to_thread(self._saves.listed)})

    def _restart(self, order: Mapping[str, Any]) -> str:
        self._cabinet.restart(_text(order, "stage")[:8])
        return f"{self._cabinet.stage} from its start"

    def _save(self, order: Mapping[str, Any]) -> str:
        kind = _text(order, "kind") or "replay"
        replay = self._cabinet.recording(as_start=kind == "start")
        name = self._saves.write(replay, self._cabinet.rom, kind, _text(order, "name"))
        return f"saved {name}: {len(replay.buttons)} frames, played again to the same RAM"

    def _open(self, order: Mapping[str, Any]) -> str:
        name = _text(order, "name")
        self._cabinet.open(self._saves.load(name))
        return f"{name}, paused at its last frame"

    def _say(self, text: str, good: bool = True) -> None:
        self._seat.tell(json.dumps({"type": "said", "text": text, "good": good}))


def _text(order: Mapping[str, Any], name: str) -> str:
    value = order.get(name, "")
    return value if isinstance(value, str) else ""
