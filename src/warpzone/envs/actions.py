"""Action sets: numbered combinations of buttons."""

from __future__ import annotations

from warpzone.errors import ConfigError

BUTTONS = {"A": 1, "B": 2, "SELECT": 4, "START": 8, "UP": 16, "DOWN": 32, "LEFT": 64, "RIGHT": 128}
"""Bits of the controller, as in nes-py and .fm2 movies."""

_RIGHT = ("NOOP", "RIGHT", "RIGHT+A", "RIGHT+B", "RIGHT+A+B")
_SIMPLE = (*_RIGHT, "A", "LEFT")
_COMPLEX = (*_SIMPLE, "LEFT+A", "LEFT+B", "LEFT+A+B", "DOWN", "UP")
_EXTENDED = (*_COMPLEX, "B", "A+B", "DOWN+A", "DOWN+B", "RIGHT+DOWN", "RIGHT+UP", "LEFT+DOWN", "UP+A")

ACTION_SETS: dict[str, tuple[str, ...]] = {
    "right": _RIGHT,
    "simple": _SIMPLE,
    "complex": _COMPLEX,
    "extended": _EXTENDED,
}
"""The first three are those of gym-super-mario-bros; `extended` adds what pipes, vines and water want."""


def parse_buttons(name: str) -> int:
    """The bits of a combination such as 'RIGHT+B'."""
    bits = 0
    for part in name.upper().split("+"):
        part = part.strip()
        if part in ("NOOP", ""):
            continue
        if part not in BUTTONS:
            raise ConfigError(f"Unknown button {part!r} in {name!r}: the buttons are {', '.join(BUTTONS)}.")
        bits |= BUTTONS[part]
    return bits


def action_buttons(action_type: str) -> list[int]:
    """The buttons of every action of a set."""
    return [parse_buttons(name) for name in action_names(action_type)]


def action_names(action_type: str) -> tuple[str, ...]:
    """The names of every action of a set."""
    if action_type not in ACTION_SETS:
        raise ConfigError(f"Unknown action set {action_type!r}: choose one of {', '.join(ACTION_SETS)}.")
    return ACTION_SETS[action_type]
