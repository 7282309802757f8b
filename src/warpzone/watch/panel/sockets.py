"""A viewer's WebSocket: messages from a queue go out, the viewer's messages come in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect


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
