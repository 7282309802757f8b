"""What the environments did since the last record: progress, shaping, stagnation."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from warpzone.envs.rewards import TERMS

STAGNATION_DECISIONS = 100
"""Decisions without new ground after which an environment counts as stagnating."""
_DEBUG_EVERY_S = 5.0
_FOLD_STEPS = 32
_MOVE = 256
"""Pixels. A larger one is a jump to another place."""
_GRAIN = 2.0**20
"""Rewards are summed in fractions of this, exactly: however many steps are summed at once, the sum is the same."""
_ARRAYS = ("progress", "idle", "x")
_SUMS = ("forward", "decisions", "dx", "gain", "scaled", "raw", "max_x")


class _Steps:
    """Steps of the environments in `columns` that are not summed up yet."""

    def __init__(self, columns: slice, num_envs: int) -> None:
        self.columns = columns
        self.count = 0
        integers = np.zeros((5, _FOLD_STEPS, num_envs), np.int64)
        self.dx, self.progress, self.x, self.final_progress, self.final_x = integers
        self.ended = np.zeros((_FOLD_STEPS, num_envs), np.bool_)
        self.terms = np.zeros((_FOLD_STEPS, len(TERMS), num_envs), np.float32)
        self.scales = [0.0] * _FOLD_STEPS

    def add(self, info: Mapping[str, Any], scale: float) -> None:
        t = self.count
        self.dx[t], self.progress[t], self.x[t] = info["dx"], info["progress"], info["x_pos"]
        final = info.get("final_info", info)
        self.final_progress[t], self.final_x[t] = final["progress"], final["x_pos"]
        ended = info.get("_final_info")
        self.ended[t] = False if ended is None else ended
        for term, row in zip(TERMS, self.terms[t], strict=True):
            row[:] = info["reward_terms"][term]
        self.scales[t] = scale
        self.count += 1


class EnvironmentMeter:
    """Sums over steps and environments; told by the collector, read by the training loop.

    Steps are only put aside when they are seen, and summed up many at a time: every step of training waits for this.
    """

    def __init__(self, num_envs: int) -> None:
        self._progress = np.full(num_envs, -1, np.int64)
        self._idle = np.zeros(num_envs, np.int64)
        self._x = np.zeros(num_envs, np.int64)
        self._parse_fail = np.zeros(num_envs, np.int64)
        self._debug = os.environ.get("MARIO_SHAPING_DEBUG") == "1"
        self._last_debug_s = 0.0
        self._last: dict[str, float | None] = {}
        self._waiting: dict[int, _Steps] = {}
        # With overlap, another thread collects than reads.
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._forward = self._decisions = 0
        self._dx = self._gain = self._scaled = self._raw = 0.0
        self._max_x = 0

    def observe(self, columns: slice, info: Mapping[str, Any], scale: float) -> None:
        """Take in one step of the environments in `columns`."""
        with self._lock:
            steps = self._waiting.get(columns.start)
            if steps is None:
                steps = self._waiting[columns.start] = _Steps(columns, len(info["dx"]))
            steps.add(info, scale)
            if steps.count == _FOLD_STEPS:
                self._fold(steps)
        if "parse_fail" in info:
            self._parse_fail[columns] = info["parse_fail"]
        if self._debug:
            self._say_if_missed(info)

    def _fold(self, steps: _Steps) -> None:
        """Sum up what was put aside."""
        n, columns = steps.count, steps.columns
        if n == 0:
            return
        steps.count = 0
        dx, progress = steps.dx[:n], steps.progress[:n]
        before = np.concatenate([self._progress[None, columns], progress[:-1]])
        # Counted from the last step that won ground or ended an episode; if none did, idling goes on.
        changed = (steps.final_progress[:n] > before) | steps.ended[:n]
        since = np.argmax(changed[::-1], axis=0)
        self._idle[columns] = np.where(changed.any(axis=0), since, self._idle[columns] + n)
        self._progress[columns], self._x[columns] = progress[-1], steps.x[n - 1]
        self._decisions += dx.size
        self._forward += int((dx > 0).sum())
        self._dx += float(dx.clip(-_MOVE, _MOVE).sum())
        self._gain += float(dx.clip(0, _MOVE).sum())
        self._max_x = max(self._max_x, int(steps.final_x[:n].max()))
        paid = steps.terms[:n].sum(axis=(1, 2), dtype=np.float64).tolist()
        scaled = [_exact(one) for one in paid]
        raw = [_exact(one / scale) if scale else 0.0 for one, scale in zip(paid, steps.scales, strict=False)]
        self._scaled += sum(scaled)
        self._raw += sum(raw)
        self._last = {
            "env_shaping_last_dx": float(dx[-1].mean()),
            "env_shaping_last_raw": raw[-1] / dx.shape[1],
            "env_shaping_last_scaled": scaled[-1] / dx.shape[1],
            "env_shaping_last_scale": steps.scales[n - 1],
        }

    def _fold_all(self) -> None:
        for steps in self._waiting.values():
            self._fold(steps)

    def _say_if_missed(self, info: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now - self._last_debug_s > _DEBUG_EVERY_S and not (np.asarray(info["dx"]) > 0).any():
            self._last_debug_s = now
            x = np.asarray(info["x_pos"])[:8].tolist()
            print(f"[reward][warn] dx_missed: no environment moved forward in this step, x_pos={x}")

    def state_dict(self) -> dict[str, Any]:
        """What the next record goes on from."""
        with self._lock:
            self._fold_all()
            return {name: getattr(self, f"_{name}") for name in (*_ARRAYS, *_SUMS, "last")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a run's sums; where each environment stood counts only for as many environments."""
        for name in _SUMS:
            setattr(self, f"_{name}", state[name])
        self._last = dict(state["last"])
        for name in _ARRAYS:
            if len(state[name]) == len(self._idle):
                getattr(self, f"_{name}")[:] = state[name]

    def read(self) -> dict[str, Any]:
        """The fields of the metrics, and begin anew."""
        with self._lock:
            self._fold_all()
            decisions = max(1, self._decisions)
            values = {
                "env_mean_x_pos": float(self._x.mean()),
                "env_max_x_pos": self._max_x,
                "env_distance_delta_sum": self._gain,
                "env_progress_dx": self._dx / decisions,
                "env_positive_dx_ratio": self._forward / decisions,
                "env_shaping_raw_sum": self._raw,
                "env_shaping_scaled_sum": self._scaled,
                "env_shaping_parse_fail": int(self._parse_fail.sum()),
                "stagnation_envs": int((self._idle >= STAGNATION_DECISIONS).sum()),
                **self._last,
            }
            self._clear()
            return values


def _exact(value: float) -> float:
    return round(value * _GRAIN) / _GRAIN if math.isfinite(value) else value
