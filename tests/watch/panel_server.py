"""A panel on a real port for tests, and a run's folder without a training."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from warpzone.cli.watch import MOST_FRAME_BYTES, build_app, listen

TOKEN = "t" * 32


@dataclass
class Panel:
    """A panel that is being served."""

    port: int
    app: Any

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, path: str, *, data: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of an answer, whatever it is."""
        request = urllib.request.Request(self.address + path, data=data, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read(), dict(reply.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read(), dict(error.headers)

    def json(self, path: str) -> Any:
        status, body, _ = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def live_address(self, run: str, what: str = "live") -> str:
        return f"ws://127.0.0.1:{self.port}/api/runs/{run}/{what}"


@contextmanager
def serving(runs: Path, *, first: str = "", access: str = "") -> Iterator[Panel]:
    with serving_app(build_app(runs, first, access)) as panel:
        yield panel


@contextmanager
def serving_app(app: Any) -> Iterator[Panel]:
    listening = listen("127.0.0.1", 0)
    settings = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, lifespan="off",
        ws_max_size=MOST_FRAME_BYTES, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(settings)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield Panel(listening.getsockname()[1], app)
    finally:
        server.should_exit = True
        thread.join(20)


def write_run(runs: Path, name: str = "demo", records: int = 5) -> Path:
    """A finished run with some records."""
    folder = runs / name
    (folder / "videos").mkdir(parents=True)
    (folder / "config.json").write_text('{"stage": {"world": 1, "stage": 1}}')
    (folder / "control.token").write_text(TOKEN + "\n")
    (folder / "control.token").chmod(0o600)
    (folder / "videos" / "final_1-1.mp4").write_bytes(b"film" * 100)
    (folder / "train.log").write_text("2026-01-01 00:00:00 [train] hello\n")
    (folder / "heartbeat.jsonl").write_text(json.dumps({"timestamp": time.time(), "phase": "closed"}) + "\n")
    for update in range(1, records + 1):
        add_record(folder, update)
    episode = {"stage": "1-1", "return": 5.0, "length": 100, "x_max": 900, "cleared": False, "end": "death"}
    (folder / "episodes.jsonl").write_text(json.dumps(episode) + "\n")
    return folder


def add_record(folder: Path, update: int, **more: Any) -> None:
    record = {
        "timestamp": time.time(), "update": update, "global_step": 100 * update, "elapsed_s": float(update),
        "avg_return": 0.5 * update, "entropy": 1.5, "env_steps_per_sec": 1000.0,
        "clear_rate": {"1-1": 0.25}, "clear_rate_mean": 0.25, **more,
    }  # fmt: skip
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
