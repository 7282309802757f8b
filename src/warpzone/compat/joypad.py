"""Discrete actions as lists of buttons: what JoypadSpace is in every version of nes-py."""

from __future__ import annotations

from typing import Any, ClassVar


class Joypad:
    """The action map of a JoypadSpace."""

    env: Any
    _button_map: ClassVar[dict[str, int]] = {
        "right": 0b10000000,
        "left": 0b01000000,
        "down": 0b00100000,
        "up": 0b00010000,
        "start": 0b00001000,
        "select": 0b00000100,
        "B": 0b00000010,
        "A": 0b00000001,
        "NOOP": 0b00000000,
    }

    @classmethod
    def buttons(cls) -> list[str]:
        """The names that actions are made of."""
        return list(cls._button_map)

    def _map_actions(self, actions: list[list[str]]) -> None:
        self._action_map: dict[int, int] = {}
        self._action_meanings: dict[int, str] = {}
        for action, buttons in enumerate(actions):
            byte = 0
            for button in buttons:
                byte |= self._button_map[button]
            self._action_map[action] = byte
            self._action_meanings[action] = " ".join(buttons)

    def step(self, action: int) -> Any:
        """A step with the buttons of this action; KeyError if there is no such action."""
        return self.env.step(self._action_map[action])

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """Sorted keyboard keys to the action they mean."""
        keys_of = {byte: keys for keys, byte in self.env.unwrapped.get_keys_to_action().items()}
        return {keys_of[byte]: action for action, byte in self._action_map.items()}

    def get_action_meanings(self) -> list[str]:
        return [self._action_meanings[action] for action in sorted(self._action_meanings)]
