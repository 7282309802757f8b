"""Discrete actions for a Gymnasium environment that takes bytes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from warpzone.compat.joypad import Joypad


class JoypadSpace(Joypad, gym.Wrapper[Any, Any, Any, Any]):
    """Action i presses the buttons of `actions[i]`."""

    def __init__(self, env: Any, actions: list[list[str]]) -> None:
        gym.Wrapper.__init__(self, env)
        self.action_space = gym.spaces.Discrete(len(actions))
        self._map_actions(actions)


__all__ = ["JoypadSpace"]
