"""Where a stuck process is: its native stack if one can be had, else its Python one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from warpzone.envs.nes_py.worker import stack_file

_SPY_TIMEOUT_S = 15.0
_SIGNAL_WAIT_S = 1.0
LINES = 30
"""Of a stack that are shown; the whole is kept in the diagnostics folder."""


def process_state(pid: int) -> str:
    """The kernel's letter and word for what a process does, such as 'T (stopped)'; empty where it does not say."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("State:"):
                return line.partition(":")[2].strip()
    return ""


def stacks_of(pid: int, folder: Path, index: int) -> str:
    """The first lines of a stuck worker's stacks; all of them are kept in the diagnostics folder."""
    state = process_state(pid)
    text = _py_spy(pid) if not state.startswith("T") else ""
    text = text or _faulthandler(pid, folder, index, state)
    if not text:
        return f"  state: {state}" if state else ""
    with contextlib.suppress(OSError):
        (folder / f"worker_{index:03d}_pid{pid}.stuck.txt").write_text(f"state: {state}\n{text}", "utf-8")
    return "\n".join([f"  state: {state}", *(f"  {line}" for line in text.splitlines()[:LINES])])


def _py_spy(pid: int) -> str:
    beside = Path(sys.executable).with_name("py-spy")
    spy = str(beside) if beside.exists() else shutil.which("py-spy")
    if spy is None:
        return ""
    for options in (["--native"], []):
        try:
            shown = subprocess.run(
                [spy, "dump", "--pid", str(pid), *options],
                capture_output=True, text=True, timeout=_SPY_TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
        if shown.returncode == 0 and shown.stdout:
            return shown.stdout
    return ""


def _faulthandler(pid: int, folder: Path, index: int, state: str) -> str:
    """Ask the worker itself. One that the kernel has stopped can't answer."""
    path = stack_file(folder, index, pid)
    if state.startswith("T") or not hasattr(signal, "SIGUSR1") or not path.exists():
        return ""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGUSR1)
    deadline = time.monotonic() + _SIGNAL_WAIT_S
    while time.monotonic() < deadline and not path.stat().st_size:
        time.sleep(0.02)
    return path.read_text(encoding="utf-8", errors="replace")
