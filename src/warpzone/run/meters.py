"""What the environments did since the last record: progress, shaping, stagnation."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from warpzone.envs.rewards import TERMS

STAGNATION_DECISIONS = 100
"""Decisions without new ground after which an environment counts as stagnating."""
_DEBUG_EVERY_S = 5.0
_ARRAYS = ("progress", "idle", "x")
_SUMS = ("steps", "forward", "decisions", "dx", "gain", "scaled", "raw", "max_x")


class EnvironmentMeter:
    """Sums over steps and environments; told by the collector, read by the training loop."""

    def __init__(self, num_envs: int) -> None:
        self._progress = np.full(num_envs, -1, np.int64)
        self._idle = np.zeros(num_envs, np.int64)
        self._x = np.zeros(num_envs, np.int64)
        self._parse_fail = np.zeros(num_envs, np.int64)
        self._debug = os.environ.get("MARIO_SHAPING_DEBUG") == "1"
        self._last_debug_s = 0.0
        self._last: dict[str, float | None] = {}
        self._clear()

    def _clear(self) -> None:
        self._steps = self._forward = self._decisions = 0
        self._dx = self._gain = self._scaled = self._raw = 0.0
        self._max_x = 0

    def observe(self, columns: slice, info: Mapping[str, Any], scale: float) -> None:
        """Take in one step of the environments in `columns`."""
        final = info.get("final_info", info)
        dx = np.asarray(info["dx"])
        progress, x = np.asarray(final["progress"]), np.asarray(info["x_pos"])
        gained = progress > self._progress[columns]
        idle = self._idle[columns]
        idle += 1
        idle[gained] = 0
        ended = info.get("_final_info")
        if ended is not None:
            idle[ended] = 0
        self._progress[columns] = np.asarray(info["progress"])
        self._x[columns] = x
        if "parse_fail" in info:
            self._parse_fail[columns] = info["parse_fail"]
        self._steps += 1
        self._decisions += len(dx)
        self._forward += int((dx > 0).sum())
        self._dx += float(dx.clip(-256, 256).sum())
        self._gain += float(dx.clip(0, 256).sum())
        self._max_x = max(self._max_x, int(np.asarray(final["x_pos"]).max()))
        scaled = float(sum(info["reward_terms"][term].sum() for term in TERMS))
        raw = scaled / scale if scale else 0.0
        self._scaled += scaled
        self._raw += raw
        self._last = {
            "env_shaping_last_dx": float(dx.mean()),
            "env_shaping_last_raw": raw / len(dx),
            "env_shaping_last_scaled": scaled / len(dx),
            "env_shaping_last_scale": scale,
        }
        if self._debug and not (dx > 0).any() and time.monotonic() - self._last_debug_s > _DEBUG_EVERY_S:
            self._last_debug_s = time.monotonic()
            print(
                f"[reward][warn] dx_missed: no environment moved forward in this step, x_pos={x[:8].tolist()}"
            )

    def state_dict(self) -> dict[str, Any]:
        """What the next record goes on from."""
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
