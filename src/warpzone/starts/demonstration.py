"""Environments that are on a trail, and the action that it shows them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.actions import action_buttons
from warpzone.starts.trails import ACTIONS, Moment

NONE = -1


class Demonstration:
    """Keeps the moment of a trail at which each environment is.

    An episode that started on a trail stays on it as long as the player is where the trail has him, decision by
    decision. Trails come from random search, so their actions are shown only before the frontier: up to the moments
    from which the agent already clears the stage in its own way.
    """

    def __init__(self, action_type: str) -> None:
        ours = {buttons: number for number, buttons in enumerate(action_buttons(action_type))}
        self._ours = [ours.get(buttons, NONE) for buttons in action_buttons(ACTIONS)]
        self._at = self._until = np.empty(0, np.int64)
        """Of each column: its moment, and the frontier. Numbers of moments count through all trails."""
        self.set_trails({})

    def set_trails(self, trails: Mapping[int, Sequence[Moment]]) -> None:
        """The moments of each stage's trail; from then on no environment is on one until its next episode."""
        self._first: dict[int, int] = {}
        rows: list[tuple[int, bool, int, int]] = []
        for stage, trail in trails.items():
            self._first[stage] = len(rows)
            for now, then in pairwise([*trail, None]):
                assert now is not None
                # Where a loop of the search was left out, what it did there leads back into the loop.
                goes_on = then is None or then.decision == now.decision + 1
                action = self._ours[now.action] if goes_on and now.action != NONE else NONE
                rows.append((action, goes_on and then is not None, now.x_pos, now.y_pos))
        table = np.array(rows or [(NONE, False, 0, 0)], np.int64)
        self._action, self._joined, self._x, self._y = np.ascontiguousarray(table.T)
        self._at[:] = NONE

    def move(self, columns: slice, info: Mapping[str, Any]) -> None:
        """Follow the environments through a step; whoever starts a new episode has left the trail."""
        if (missing := columns.stop - len(self._at)) > 0:
            self._at, self._until = (
                np.append(kept, np.full(missing, NONE)) for kept in (self._at, self._until)
            )
        at = self._at[columns]
        on = np.flatnonzero(at != NONE)
        if not len(on):
            return
        here, then = at[on], at[on] + 1
        stays = self._joined[here].astype(bool)
        then[~stays] = 0
        stays &= (info["x_pos"][on] == self._x[then]) & (info["y_pos"][on] == self._y[then])
        if "_final_info" in info:
            stays &= ~info["_final_info"][on]
        at[on] = np.where(stays, then, NONE)

    def begin(self, column: int, stage: int, moment: int, frontier: int) -> None:
        """An episode starts at a moment of the stage's trail, whose frontier is there now."""
        self._at[column] = self._first[stage] + moment
        self._until[column] = self._first[stage] + frontier

    def shown(self, columns: slice) -> NDArray[np.int64]:
        """The action that a trail shows for each observation; -1 where there is none."""
        at = self._at[columns]
        return np.where((at != NONE) & (at < self._until[columns]), self._action[at], NONE)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self._at.tolist(), "until": self._until.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._at, self._until = np.array(state["at"], np.int64), np.array(state["until"], np.int64)
