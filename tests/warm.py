"""Python processes that start in a moment: one that has loaded torch and warpzone forks for each of them.

Each has its own folder, environment, output and exit status, as one started anew; only the seconds of imports are
shared. What a start itself does is tested with real ones (tests/cli/test_startup.py).
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

LOADED = (
    *("torch", "gymnasium", "tyro", "rich", "av", "matplotlib.pyplot", "torch.utils.tensorboard", "warpzone"),
    *(f"warpzone.cli.{name}" for name in ("train", "eval", "record", "report", "master", "watch")),
    "warpzone.run.loop",
)
"""None of them starts a thread, which a fork would lose."""


@dataclass(frozen=True)
class Result:
    """What a process said, and the status it ended with: minus the number of the signal that killed it."""

    code: int
    out: str
    err: str


def run(main: str, *argv: str, folder: Path, env: dict[str, str], timeout_s: float) -> Result:
    """Run a module (as `python -m` does) or a script (a path that ends in .py) in a folder to its end."""
    server = _server()
    assert server.stdin is not None
    with TemporaryDirectory() as said:
        asked = {"main": main, "argv": argv, "folder": str(folder), "env": env, "said": said}
        server.stdin.write(json.dumps(asked).encode() + b"\n")
        pid, code = int(_answer(server)), _answer(server, timeout_s)
        if not code:
            os.kill(pid, signal.SIGKILL)
            _answer(server)
            raise subprocess.TimeoutExpired([main, *argv], timeout_s)
        out, err = ((Path(said) / name).read_text() for name in ("out", "err"))
    return Result(int(code), out, err)


@cache
def _server() -> subprocess.Popen[bytes]:
    """Started by the first that needs it; it ends with the tests."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    atexit.register(server.kill)
    return server


def _answer(server: subprocess.Popen[bytes], timeout_s: float = 240) -> bytes:
    """The next line it says; nothing if it says none in time."""
    assert server.stdout is not None
    if not select.select([server.stdout], [], [], timeout_s)[0]:
        return b""
    line = server.stdout.readline()
    assert line, "the process that forks has ended"
    return line


def serve() -> None:
    """Fork for each request; say the number of the process, and its status once it has ended."""
    for name in LOADED:
        import_module(name)
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            become(**json.loads(line))
            return
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def become(main: str, argv: list[str], folder: str, env: dict[str, str], said: str) -> None:
    """In the new process: be what was asked for, to its last exception."""
    for number, (name, mode) in enumerate((("/dev/null", "r"), (f"{said}/out", "w"), (f"{said}/err", "w"))):
        with open(name, mode) as file:
            os.dup2(file.fileno(), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [main, *argv]
    if main.endswith(".py"):
        sys.path[0] = str(Path(main).parent)
        runpy.run_path(main, run_name="__main__")
    else:
        sys.path[0] = folder
        runpy.run_module(main, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
