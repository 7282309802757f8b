"""Discrete actions for an environment that takes bytes."""

from __future__ import annotations

from typing import Any

from warpzone.compat.gym7 import Discrete, Wrapper
from warpzone.compat.joypad import Joypad


class JoypadSpace(Joypad, Wrapper):  # type: ignore[misc]
    """Action i presses the buttons of `actions[i]`."""

    def __init__(self, env: Any, actions: list[list[str]]) -> None:
        Wrapper.__init__(self, env)
        self.action_space = Discrete(len(actions))
        self._map_actions(actions)

    def reset(self, **arguments: Any) -> Any:
        """Begin an episode. The original takes no arguments; these are passed on."""
        return self.env.reset(**arguments)


__all__ = ["JoypadSpace"]
