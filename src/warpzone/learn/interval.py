"""The learner's numbers between two records of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LAST = ("learning_rate", "entropy_coef", "reward_scale")
_TIMES = ("learn_time", "replay_sample_time_ms")


class IntervalMeans:
    """Means over the updates since the last `read`; the last value of rates that are set and of the replay's state.

    A number that an update did not report does not count for that update.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, float]) -> None:
        """Take in the numbers of one update."""
        for name, value in values.items():
            if name in _LAST or (name.startswith("replay_") and name not in _TIMES):
                self._sums[name], self._counts[name] = value, 1
            else:
                self._sums[name] = self._sums.get(name, 0.0) + value
                self._counts[name] = self._counts.get(name, 0) + 1

    def read(self) -> dict[str, float]:
        """The numbers for the record; the next interval begins."""
        values = {name: total / self._counts[name] for name, total in self._sums.items()}
        self._sums, self._counts = {}, {}
        return values

    def state_dict(self) -> dict[str, Any]:
        """The interval under way, without its timings: those are of one session."""
        return {
            "sums": {name: value for name, value in self._sums.items() if name not in _TIMES},
            "counts": {name: value for name, value in self._counts.items() if name not in _TIMES},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
