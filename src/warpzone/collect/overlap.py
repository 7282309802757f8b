"""Collection overlapped with learning: a thread fills the next rollout while the learner reads the last."""

from __future__ import annotations

import atexit
import queue
import threading
from contextlib import nullcontext
from typing import Any

import torch

from warpzone.collect.collector import Collector
from warpzone.collect.env_group import Listeners
from warpzone.learn.rollout import Rollout


class OverlappedCollector:
    """Runs a Collector in a thread, with the same interface.

    There are two buffers: one is being filled, the caller reads the other and returns it by asking for the next.
    So no rollout is more than one update behind, and every step records the weights that chose it.
    """

    def __init__(self, inner: Collector) -> None:
        self.inner = inner
        self.rollout_time = 0.0
        """Seconds the last rollout took to collect."""
        self._free: queue.SimpleQueue[tuple[Rollout, torch.cuda.Event | None] | None] = queue.SimpleQueue()
        self._filled: queue.SimpleQueue[tuple[Rollout, float] | BaseException] = queue.SimpleQueue()
        self._lent: Rollout | None = None
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self, listeners: Listeners | None = None) -> None:
        """Reset the environments and begin to collect. `listeners` are called on the collecting thread."""
        self.inner.start(listeners)
        for rollout in self.inner.buffers:
            self._free.put((rollout, None))
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._thread.start()
        # A thread inside torch when the interpreter ends would bring the process down.
        atexit.register(self.close)

    def collect(self) -> Rollout:
        """The next rollout, waiting for it if necessary; the one returned before will be overwritten."""
        if self._failure is not None:
            raise self._failure
        if self._lent is not None:
            self._free.put((self._lent, _event_now(self.inner.device)))
            self._lent = None
        filled = self._filled.get()
        if isinstance(filled, BaseException):
            self._failure = filled
            raise filled
        self._lent, self.rollout_time = filled
        return self._lent

    def close(self) -> None:
        """Stop the thread within a step; the environments belong to the caller."""
        if self._thread is None:
            return
        self.inner.stop()
        self._free.put(None)
        self._thread.join()
        self._thread = None
        atexit.unregister(self.close)

    def state_dict(self) -> dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state)

    def _run(self) -> None:
        stream = _stream_for_acting(self.inner.device)
        try:
            with torch.cuda.stream(stream) if stream is not None else nullcontext():
                while (free := self._free.get()) is not None:
                    rollout, read = free
                    if stream is not None and read is not None:
                        stream.wait_event(read)
                    if not self.inner.fill(rollout):
                        return
                    self._filled.put((rollout, self.inner.rollout_time))
        except BaseException as error:
            self._filled.put(error)


def _stream_for_acting(device: torch.device) -> torch.cuda.Stream | None:
    """Acting is short and the environments wait for it, so it has priority over learning."""
    if device.type != "cuda":
        return None
    return torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]


def _event_now(device: torch.device) -> torch.cuda.Event | None:
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return event
