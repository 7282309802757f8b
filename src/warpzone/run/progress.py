"""How far a run is, over all its sessions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Progress:
    """Updates, decisions and seconds of training so far; the clock runs between `start_clock` and `stop_clock`."""

    update: int = 0
    global_step: int = 0
    evaluated_at: int = 0
    """The update of the last evaluation on fresh episodes."""
    failed_evaluations: int = 0
    """How many of them fell short of the target."""
    went_back_at: int = 0
    """The update of the last return to the best weights."""
    clear_rate: dict[str, float] = field(default_factory=dict)
    """Clear rates of the stages with enough recent episodes."""
    stopped_s: float = 0.0
    """Seconds before the clock was last started, less what was excluded since."""
    started: float | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds of training, over all sessions."""
        running = 0.0 if self.started is None else time.monotonic() - self.started
        return self.stopped_s + running

    def start_clock(self) -> None:
        self.started = time.monotonic()

    def exclude(self, seconds: float) -> None:
        """Take back time that was not spent on training."""
        self.stopped_s -= seconds

    def stop_clock(self) -> None:
        self.stopped_s, self.started = self.elapsed_s, None

    def state_dict(self) -> dict[str, Any]:
        counts = ("update", "global_step", "elapsed_s", "evaluated_at", "failed_evaluations", "went_back_at")
        return {name: getattr(self, name) for name in counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.update, self.global_step = state["update"], state["global_step"]
        self.stopped_s, self.evaluated_at = state["elapsed_s"], state["evaluated_at"]
        # Older checkpoints have neither.
        self.failed_evaluations = state.get("failed_evaluations", 0)
        self.went_back_at = state.get("went_back_at", 0)
