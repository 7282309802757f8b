"""What every thread is doing right now: Python stacks and, on Linux, the state of native threads."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from pathlib import Path

_TASKS = Path("/proc/self/task")
_STATES = {"R": "running", "S": "sleeping", "D": "waiting for a device", "T": "stopped", "Z": "dead"}


def format_stacks(reason: str) -> str:
    """A page with the reason, the Python stack of each thread and a line per native thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [f"{time.strftime('%Y-%m-%d %H:%M:%S')} {reason}\n"]
    for ident, frame in sys._current_frames().items():
        is_self = ident == threading.get_ident()
        parts.append(f"\nthread {names.get(ident, ident)}{' (wrote this page)' if is_self else ''}\n")
        parts.extend(traceback.format_stack(frame))
    native = native_threads()
    if native:
        parts.append("\nnative threads\n")
        parts.extend(f"  {line}\n" for line in native)
    return "".join(parts)


def native_threads() -> list[str]:
    """One line per thread of the process: id, name, state and what it waits for; empty where there is no /proc."""
    lines = []
    try:
        tasks = sorted(_TASKS.iterdir(), key=lambda task: int(task.name))
    except OSError:
        return []
    for task in tasks:
        # The name is in parentheses and may contain spaces; the state is the first word after them.
        rest = _read(task / "stat").rpartition(")")[2].split()
        if not rest:
            continue
        state = _STATES.get(rest[0], rest[0])
        waits_in = _read(task / "wchan").strip("0\n")
        system_call = _read(task / "syscall").split()
        details = [f"in {waits_in}"] if waits_in else []
        details += [f"system call {system_call[0]}"] if system_call and system_call[0].isdigit() else []
        lines.append(" ".join([f"{task.name:>7}", _read(task / "comm").strip(), state, *details]))
    return lines


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        # The thread has ended, or the file is not readable.
        return ""
