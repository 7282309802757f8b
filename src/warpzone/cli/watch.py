"""`warpzone watch [RUN]`: a local web page that follows runs while they train."""

from __future__ import annotations

import os
import socket
import time
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tyro

from warpzone.checkpoints.finding import not_found
from warpzone.cli.flags import parse
from warpzone.cli.settings import Page
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK
from warpzone.watch.panel.guard import is_loopback

NICENESS = 5
WAIT_FOR_RUN_S = 10.0
MOST_FRAME_BYTES = 16 << 10


@dataclass(frozen=True)
class Config(Page):
    """Follow a running or finished run in the browser: curves, the agent playing, clear rates, controls."""

    run: tyro.conf.Positional[str] = ""
    """Name or folder of the run to show first; by default the newest."""
    runs_dir: Path = Path("runs")
    """Folder of all runs; nothing outside can be read."""
    port: int = 8420
    """Port to listen on (0 = any free one)."""
    trust_code: bool = False
    """Run the custom code kept in a run's folder; read it first."""


SETTINGS = {"": Config}


def run(argv: list[str]) -> int:
    config = parse(Config(), argv, "warpzone watch")
    access = config.token
    check_access(config.host, access)
    name = Path(config.run).name
    runs_dir = Path(config.run).parent if "/" in config.run else config.runs_dir
    # A training that was started a moment ago is still making its folder.
    until = time.monotonic() + WAIT_FOR_RUN_S
    while name and not (runs_dir / name).is_dir() and not config.dry_run and time.monotonic() < until:
        time.sleep(0.1)
    if name and not (runs_dir / name).is_dir():
        raise not_found(name, runs_dir / name)
    if config.dry_run:
        print(f"would show {runs_dir / name} at http://{config.host}:{config.port}/")
        return EXIT_OK
    listening = open_page(config, "watch", "Ctrl+C ends the page, not the training", runs_dir, name)
    serve(build_app(runs_dir, name, access, trust_code=config.trust_code), listening)
    return EXIT_OK


def open_page(config: Page, command: str, hint: str, runs_dir: Path, name: str) -> socket.socket:
    """Listen, say where and, if asked to, show it in the browser."""
    listening = listen(config.host, config.port)
    address = page_address(listening, config.host, config.token, runs_dir, name)
    print(f"[{command}] {address}\n[{command}] {hint}", flush=True)
    if config.open:
        webbrowser.open(address)
    return listening


def check_access(host: str, access_token: str) -> None:
    """Refuse to be reached from elsewhere without a token."""
    if is_loopback(host):
        return
    if len(access_token) < 16:
        raise ConfigError(
            f"Listening on {host} lets others reach the page: give --token with at least 16 characters, "
            "or leave --host out and use an SSH tunnel."
        )
    if not all(character.isalnum() or character in "-_." for character in access_token):
        raise ConfigError("--token may consist of letters, digits, '-', '_' and '.'.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, or one sentence that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
        # A browser that is quicker than we are waits instead of being refused.
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"Port {port} of {host} can't be used ({error.strerror or error}): choose another --port."
        ) from error
    return listening


def page_address(listening: socket.socket, host: str, access: str, runs_dir: Path, name: str) -> str:
    """Where to point the browser. The run's token goes behind the #, which browsers keep to themselves."""
    from warpzone.run.control import TOKEN_FILE

    shown = f"[{host}]" if ":" in host else host
    fragment = f"run={name}" if name else ""
    if name:
        with suppress(OSError):
            fragment += f"&token={(runs_dir / name / TOKEN_FILE).read_text().strip()}"
    query = f"?token={access}" if access else ""
    return f"http://{shown}:{listening.getsockname()[1]}/{query}" + (f"#{fragment}" if fragment else "")


def build_app(runs_dir: Path, name: str, access: str, *, trust_code: bool = False) -> Any:
    """The panel with everything it may do."""
    from warpzone.agents.exhibition import exhibit
    from warpzone.run.control import BOUNDS, is_token, send_request
    from warpzone.watch.panel.server import Backend, create_app

    backend = Backend(partial(exhibit, trust_code=trust_code), is_token, send_request, BOUNDS)
    return create_app(runs_dir, backend, first_run=name, access_token=access)


def serve(app: Any, listening: socket.socket) -> None:
    """Serve until interrupted, letting the training go first on a busy machine."""
    import torch

    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(NICENESS)
    serve_app(app, listening)


def serve_app(app: Any, listening: socket.socket) -> None:
    """Serve a page until interrupted."""
    import uvicorn

    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False,
        ws_max_size=MOST_FRAME_BYTES, ws_max_queue=8, timeout_graceful_shutdown=1, lifespan="off",
        # Pictures are compressed already; to compress again would cost for every viewer anew.
        ws_per_message_deflate=False,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listening])
