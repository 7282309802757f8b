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
        records = [self._record(int(i), bool(terminated[i]), info) for i in np.flatnonzero(ended & ~lost)]
        for i in np.flatnonzero(lost):
            self._begin(int(i), info)
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

    def _record(self, i: int, terminated: bool, info: Info) -> dict[str, Any]:
        final = info.get("final_info", info)
        cleared = bool(final["flag_get"][i]) if "flag_get" in final else False
        end = "terminated" if terminated else "truncated"
        record = {
            "stage": int(self.stage[i]),
            "return": float(self.returns[i]),
            "length": int(self.lengths[i]),
            "x_max": int(self.x_max[i]),
            "cleared": cleared,
            "end": ENDS[final["end"][i]] if "end" in final else end,
            "start": self.start[i],
            "env": self.first_env + i,
        }
        self._begin(i, info)
        return record

    def _begin(self, i: int, info: Info) -> None:
        self.returns[i] = self.lengths[i] = self.x_max[i] = 0
        self.start[i] = _start(i, info)


def _start(i: int, info: Info) -> str:
    return "snapshot" if "from_snapshot" in info and info["from_snapshot"][i] else "stage"
