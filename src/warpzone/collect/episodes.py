"""One record for every finished episode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.collect.interfaces import Info
from warpzone.envs.telemetry import ENDS


class EpisodeLog:
    """Follows N environments and turns each episode's end into a dict.

    Keys: `stage` (its index), `return`, `length`, `x_max`, `cleared`, `end` (one of ENDS; "terminated" or
    "truncated" where the environment does not say), `start` ("snapshot" or "stage") and `env` (its number, the first
    being `first_env`).
    """

    def __init__(self, num_envs: int, info: Info, first_env: int = 0) -> None:
        self.first_env = first_env
        self.returns = np.zeros(num_envs, np.float64)
        self.lengths = np.zeros(num_envs, np.int64)
        self.x_max = np.zeros(num_envs, np.int64)
        self.stage = np.array(info["stage_index"], np.int64)
        self.start = [_start(i, info) for i in range(num_envs)]

    def observe(
        self,
        rewards: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: Info,
    ) -> list[dict[str, Any]]:
        """Take in one step and return the records of the episodes it ended; those that were lost have none."""
        self.returns += rewards
        self.lengths += 1
        ended = terminated | truncated
        if "x_pos" in info:
            # Where an episode ended, info already describes the next one.
            reached = np.where(ended, info.get("final_info", info)["x_pos"], info["x_pos"])
            np.maximum(self.x_max, reached, out=self.x_max)
        lost = info.get("worker_lost", np.zeros_like(ended))
        records = self._records(np.flatnonzero(ended & ~lost), terminated, info)
        self._begin(np.flatnonzero(ended | lost), info)
        self.stage[:] = info["stage_index"]
        return records

    def state_dict(self) -> dict[str, Any]:
        """The episodes under way."""
        return {
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "x_max": self.x_max.copy(),
            "stage": self.stage.copy(),
            "start": list(self.start),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("returns", "lengths", "x_max", "stage"):
            getattr(self, name)[:] = state[name]
        self.start = list(state["start"])

    def _records(
        self, rows: NDArray[np.int64], terminated: NDArray[np.bool_], info: Info
    ) -> list[dict[str, Any]]:
        if not len(rows):
            return []
        final = info.get("final_info", info)
        ends = final["end"][rows].tolist() if "end" in final else []
        columns: dict[str, list[Any]] = {
            "stage": self.stage[rows].tolist(),
            "return": self.returns[rows].tolist(),
            "length": self.lengths[rows].tolist(),
            "x_max": self.x_max[rows].tolist(),
            "cleared": [bool(flag) for flag in final["flag_get"][rows]]
            if "flag_get" in final
            else [False] * len(rows),
            "end": [ENDS[end] for end in ends]
            or np.where(terminated[rows], "terminated", "truncated").tolist(),
            "start": [self.start[i] for i in rows.tolist()],
            "env": (self.first_env + rows).tolist(),
        }
        return [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]

    def _begin(self, rows: NDArray[np.int64], info: Info) -> None:
        self.returns[rows] = self.lengths[rows] = self.x_max[rows] = 0
        for i in rows.tolist():
            self.start[i] = _start(i, info)


def _start(i: int, info: Info) -> str:
    return "snapshot" if "from_snapshot" in info and info["from_snapshot"][i] else "stage"
