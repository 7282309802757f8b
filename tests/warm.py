"""Python processes that start in a moment: one that has loaded torch and warpzone forks for each of them.

Each has its own folder, environment, output and exit status, as one started anew; only the seconds of imports are
shared. What a start itself does is tested with real ones (tests/cli/test_startup.py).
"""

from __future__ import annotations

import atexit
import contextlib
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
ROOT = Path(__file__).parents[1]
START_S = 240.0
"""A busy machine takes long to load all that."""


@dataclass(frozen=True)
class Result:
    """What a process said, and the status it ended with: minus the number of the signal that killed it."""

    code: int
    out: str
    err: str


class Process:
    """A module (as `python -m` has it) or a script (a path that ends in .py) that runs in a folder.

    One at a time: wait for its end before the next is started. What it says goes to `log` if there is one.
    """

    def __init__(
        self, main: str, *argv: str, folder: Path, env: dict[str, str], log: Path | None = None
    ) -> None:
        self._server, self._said = _server(), TemporaryDirectory()
        self.out, self.err = ((log or Path(self._said.name) / name).absolute() for name in ("out", "err"))
        asked = {
            "main": main, "argv": argv, "folder": str(folder), "env": env, "said": [str(self.out), str(self.err)],
        }  # fmt: skip
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked).encode() + b"\n")
        self.args, self.pid = [main, *argv], int(_answer(self._server, START_S))
        self.returncode: int | None = None

    def poll(self, timeout_s: float = 0.0) -> int | None:
        """The exit status; None while it runs."""
        if self.returncode is None and (code := _answer(self._server, timeout_s)):
            self.returncode = int(code)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # It may have ended without its status being told yet.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, timeout_s: float = START_S) -> Result:
        """Wait for the end. What takes longer is killed, and an error."""
        if self.poll(timeout_s) is None:
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout_s)
        assert self.returncode is not None
        return Result(self.returncode, self.out.read_text(), self.err.read_text())

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
        self.end()


@cache
def _server() -> subprocess.Popen[bytes]:
    """Started by the first that needs it; it ends with the tests."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    atexit.register(server.wait)
    atexit.register(server.kill)  # before the wait
    return server


def _answer(server: subprocess.Popen[bytes], timeout_s: float) -> bytes:
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


def become(main: str, argv: list[str], folder: str, env: dict[str, str], said: list[str]) -> None:
    """In the new process: be what was asked for, to its last exception."""
    for number, name in enumerate(("/dev/null", *said)):
        with open(name, "a" if number else "r") as file:
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
