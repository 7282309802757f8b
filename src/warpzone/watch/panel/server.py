"""The panel's routes: the page, its data, and the few requests it may send to a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse

from warpzone.errors import ConfigError
from warpzone.watch.jsonl import json_file
from warpzone.watch.panel.guard import Guard
from warpzone.watch.panel.hub import Hub
from warpzone.watch.panel.player import Exhibition, Player
from warpzone.watch.panel.runs import MASTER_FILE, VIDEO_KINDS, RunReader, Runs

STATIC = Path(__file__).parent / "static"
PAGE = {name: STATIC / name for name in ("panel.css", "panel.js", "master.js", "charts.js", "icon.svg")}
MOST_REQUEST_BYTES = 16 << 10
MOST_VIEWERS = 64
TOO_MANY = 1013


@dataclass(frozen=True)
class Backend:
    """What the panel can't do by reading files."""

    exhibition: Exhibition
    is_token: Callable[[Path, str], bool]
    """Whether a token is the run's own."""
    send_request: Callable[[Path, str, Mapping[str, Any]], str]
    """Send a request to the run; returns the request's id. ConfigError says why not."""
    bounds: Mapping[str, tuple[float, float]]
    """What can be changed, and within which bounds."""


def create_app(runs_folder: Path, backend: Backend, *, first_run: str = "", access_token: str = "") -> Any:
    """The panel of all runs below a folder, as an ASGI application."""
    app = FastAPI(title="warpzone watch", docs_url=None, redoc_url=None, openapi_url=None)
    runs = Runs(runs_folder)
    hubs: dict[str, Hub] = {}
    players: dict[str, Player] = {}
    app.state.hubs, app.state.players = hubs, players

    def existing(run: str) -> RunReader:
        reader = runs.reader(run)
        if reader is None:
            raise HTTPException(404, "There is no such run.")
        return reader

    @app.get("/api/runs")
    def list_runs() -> dict[str, Any]:
        listed = [reader.summary() for name in runs.names() if (reader := runs.reader(name))]
        bounds = {name: list(pair) for name, pair in backend.bounds.items()}
        return {"runs": listed, "first": first_run, "bounds": bounds}

    @app.get("/api/master")
    def master() -> dict[str, Any]:
        """How a `warpzone master` whose runs these are is doing; an empty object if there is none."""
        return json_file(runs_folder / MASTER_FILE)

    @app.get("/api/runs/{run}/curves")
    def curves(run: str) -> dict[str, Any]:
        reader = existing(run)
        with suppress(OSError):
            reader.refresh()
        return {"name": run, "curves": reader.curves()}

    @app.get("/api/runs/{run}/config")
    def config(run: str) -> dict[str, Any]:
        return json_file(existing(run).folder / "config.json")

    @app.get("/api/runs/{run}/videos/{name}")
    def video(run: str, name: str) -> FileResponse:
        path = runs.video(run, name)
        if path is None:
            raise HTTPException(404, "There is no such video.")
        return FileResponse(path, media_type=VIDEO_KINDS[path.suffix])

    @app.post("/api/runs/{run}/control")
    async def control(run: str, request: Request) -> dict[str, Any]:
        folder = existing(run).folder
        token = request.headers.get("x-run-token", "")
        if not backend.is_token(folder, token):
            raise HTTPException(403, "Controls need this run's token: it is in control.token in its folder.")
        wanted = await _json_body(request)
        try:
            return {"id": backend.send_request(folder, token, wanted)}
        except ConfigError as error:
            raise HTTPException(400, str(error)) from None
        except OSError:
            raise HTTPException(409, "The run does not accept requests now.") from None

    @app.websocket("/api/runs/{run}/live")
    async def live(socket: WebSocket, run: str) -> None:
        reader = runs.reader(run)
        if reader is None or sum(hub.viewers for hub in hubs.values()) >= MOST_VIEWERS:
            await socket.close(TOO_MANY if reader else 4404)
            return
        hub = hubs.setdefault(run, Hub(reader))
        await socket.accept()
        queue = await hub.join()
        try:
            await serve_socket(socket, queue, lambda text: None)
        finally:
            hub.leave(queue)

    @app.websocket("/api/runs/{run}/play")
    async def play(socket: WebSocket, run: str) -> None:
        reader = runs.reader(run)
        if reader is None or sum(player.viewers for player in players.values()) >= MOST_VIEWERS:
            await socket.close(TOO_MANY if reader else 4404)
            return
        player = players.setdefault(run, Player(reader.folder, backend.exhibition))
        await socket.accept()
        queue = player.join()

        def on_text(text: str) -> None:
            with suppress(ValueError, RecursionError):
                wish = json.loads(text)
                if isinstance(wish, dict) and isinstance(wish.get("stage"), str):
                    player.wish.stage = wish["stage"][:8]

        try:
            await serve_socket(socket, queue, on_text)
        finally:
            player.leave(queue)

    add_page(app, {"": STATIC / "index.html", **PAGE})
    return Guard(app, access_token)


def add_page(app: FastAPI, files: Mapping[str, Path]) -> None:
    """Serve these files, and no others, by name."""

    @app.get("/{name}")
    @app.get("/")
    def page(name: str = "") -> FileResponse:
        if name not in files:
            raise HTTPException(404, "There is no such page.")
        return FileResponse(files[name], headers={"cache-control": "no-cache"})


async def serve_socket(socket: WebSocket, queue: asyncio.Queue[Any], on_text: Callable[[str], None]) -> None:
    """Send the queue's messages until the viewer leaves."""
    listening = asyncio.create_task(_listen(socket, on_text))
    try:
        while not listening.done():
            getting = asyncio.create_task(queue.get())
            await asyncio.wait({getting, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                getting.cancel()
                break
            message = getting.result()
            if isinstance(message, bytes):
                await socket.send_bytes(message)
            else:
                await socket.send_text(message)
    except (WebSocketDisconnect, RuntimeError, OSError):
        # The viewer is gone, as at the end of most visits.
        return
    finally:
        listening.cancel()


async def _listen(socket: WebSocket, on_text: Callable[[str], None]) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        if text:
            on_text(text)


async def _json_body(request: Request) -> Mapping[str, Any]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_REQUEST_BYTES:
            raise HTTPException(413, "The request is too long.")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is not JSON.") from None
    if not isinstance(value, dict):
        raise HTTPException(400, "The request is not a JSON object.")
    return value
