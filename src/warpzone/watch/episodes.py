"""Finished episodes: `episodes.jsonl`, and metrics of the most recent ones."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.watch.jsonl import JsonLines, plain

WINDOW_EPISODES, LEVEL_EPISODES = 100, 1000
"""Episodes behind a clear rate: of a stage, and of generated levels. These differ so much that the best of many rates
over a hundred episodes is the luckiest, and its checkpoint not the best."""


def window_of(stage: str, window: int = WINDOW_EPISODES) -> int:
    """The episodes behind the clear rate of a stage, or of all generated levels together."""
    return max(window, LEVEL_EPISODES) if "@" in stage else window


class EpisodeLog:
    """Writes episode records and keeps the windows behind `avg_return`, `recent_return_*` and `clear_rate`.

    A record is `{stage, return, length, x_max, cleared, end, start, noisy}`; more keys are kept as they are. The
    windows are of episodes from the true start of a stage: those whose `start` is "snapshot" are only written.
    `noisy` ones, with buttons that stick, have a window of their own.
    """

    def __init__(self, path: Path, *, window: int = WINDOW_EPISODES) -> None:
        self._lines = JsonLines(path)
        self._window = window
        self._lock = threading.Lock()
        self._returns: deque[float] = deque(maxlen=window)
        self._cleared: dict[str, deque[bool]] = {}
        self._noisy: deque[bool] = deque(maxlen=window)
        self._episodes = 0
        self._first_flag_s: float | None = None

    def add(
        self, records: Sequence[Mapping[str, Any]], *, update: int, global_step: int, elapsed_s: float
    ) -> None:
        """`elapsed_s`: seconds of training so far, including those before a resume."""
        with self._lock:
            first = self._episodes + 1
            self._episodes += len(records)
            for record in records:
                if record.get("start") != "snapshot":
                    self._count(record, elapsed_s)
        counts = {"timestamp": time.time(), "update": update, "global_step": global_step}
        self._lines.write(*({**counts, "episode": n, **record} for n, record in enumerate(records, first)))

    def _count(self, record: Mapping[str, Any], elapsed_s: float) -> None:
        if record.get("noisy"):
            self._noisy.append(bool(record["cleared"]))
            return
        self._returns.append(float(record["return"]))
        stage, cleared = str(record["stage"]), bool(record["cleared"])
        self._cleared.setdefault(stage, self._last(stage)).append(cleared)
        if cleared and self._first_flag_s is None:
            self._first_flag_s = elapsed_s

    def _last(self, stage: str, seen: Iterable[bool] = ()) -> deque[bool]:
        return deque(seen, maxlen=window_of(stage, self._window))

    def clear_rates(self, *, min_episodes: int = 1) -> dict[str, float]:
        """Share of the last episodes of each stage that reached the flag.

        Stages with fewer than `min_episodes` are left out: one lucky episode does not make a checkpoint the best.
        """
        with self._lock:
            enough = {stage: seen for stage, seen in self._cleared.items() if len(seen) >= min_episodes}
            return {stage: sum(seen) / len(seen) for stage, seen in sorted(enough.items())}

    def mean_return(self) -> float:
        """Mean return of the recent episodes; 0 before the first."""
        with self._lock:
            return float(np.mean(self._returns)) if self._returns else 0.0

    def summary(self) -> dict[str, Any]:
        """The metric fields that come from episodes."""
        rates = self.clear_rates()
        with self._lock:
            returns, noisy, first_flag_s = list(self._returns), list(self._noisy), self._first_flag_s
        p50, p90, p99 = np.percentile(returns, (50, 90, 99)).tolist() if returns else (None, None, None)
        return {
            "avg_return": float(np.mean(returns)) if returns else None,
            "recent_return_p50": p50,
            "recent_return_p90": p90,
            "recent_return_p99": p99,
            "clear_rate": rates,
            "clear_rate_mean": sum(rates.values()) / len(rates) if rates else None,
            "clear_rate_noisy": sum(noisy) / len(noisy) if noisy else None,
            "time_to_first_flag": first_flag_s,
        }

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            return {
                "returns": list(self._returns),
                "cleared": {stage: list(seen) for stage, seen in self._cleared.items()},
                "noisy": list(self._noisy),
                "episodes": self._episodes,
                "first_flag_s": plain(self._first_flag_s),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            self._returns = deque(state["returns"], maxlen=self._window)
            self._cleared = {stage: self._last(stage, seen) for stage, seen in state["cleared"].items()}
            self._noisy = deque(state.get("noisy", ()), maxlen=self._window)
            self._episodes = state["episodes"]
            self._first_flag_s = state["first_flag_s"]

    def forget_others(self, stages: Sequence[str]) -> None:
        """Keep only the windows of these stages: no other one is played any more."""
        with self._lock:
            self._cleared = {stage: seen for stage, seen in self._cleared.items() if stage in stages}

    def close(self) -> None:
        self._lines.close()
