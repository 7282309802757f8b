"""Blocks that a second Ctrl+C must not interrupt: a checkpoint is committed completely or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python runs signal handlers on the main thread only, so these two need no lock.
_commits_open = 0
_interrupt_waiting = 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back the KeyboardInterrupt of a second Ctrl+C until the block is left."""
    global _commits_open, _interrupt_waiting
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _commits_open += 1
    try:
        yield
    finally:
        _commits_open -= 1
        if _commits_open == 0 and _interrupt_waiting:
            number, _interrupt_waiting = _interrupt_waiting, 0
            raise KeyboardInterrupt(number)


def interrupt(number: int) -> None:
    """Raise KeyboardInterrupt for this signal: now, or at the end of the block that must not be interrupted."""
    global _interrupt_waiting
    if not _commits_open:
        raise KeyboardInterrupt(number)
    _interrupt_waiting = number
