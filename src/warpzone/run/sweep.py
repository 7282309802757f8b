"""Hyper-parameter search: short trainings, those that clear less than the others are stopped early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.loop import train
from warpzone.run.stopping import EXIT_FAILED

Scale = Literal["log", "linear", "choice"]


@dataclass(frozen=True)
class Range:
    """Values to draw a setting from: two bounds, or a list."""

    room: str
    """The part of the configuration the setting belongs to, such as learn."""
    scale: Scale
    values: tuple[Any, ...]


SPACE: dict[str, Range] = {
    "learning_rate": Range("learn", "log", (1e-4, 3e-3)),
    "entropy_coef": Range("learn", "log", (1e-3, 5e-2)),
    "gamma": Range("learn", "choice", (0.85, 0.9, 0.95, 0.98)),
    "gae_lambda": Range("learn", "choice", (0.9, 0.95, 1.0)),
    "epochs": Range("learn", "choice", (2, 3, 4, 6)),
    "clip": Range("learn", "choice", (0.1, 0.2, 0.3)),
    "max_grad_norm": Range("learn", "log", (0.2, 5.0)),
    "reward_death": Range("reward", "linear", (0.0, 200.0)),
    "reward_flag": Range("reward", "linear", (0.0, 200.0)),
}
"""What can be searched, and where."""


def drawn(suggest: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """A value for each setting, from an Optuna trial."""
    values = {}
    for name in names:
        space = SPACE[name]
        if space.scale == "choice":
            values[name] = suggest.suggest_categorical(name, space.values)
        else:
            low, high = space.values
            values[name] = suggest.suggest_float(name, low, high, log=space.scale == "log")
    return values


def with_values(config: TrainConfig, values: dict[str, Any]) -> TrainConfig:
    """The configuration with these settings."""
    for name, value in values.items():
        config = config.changed(SPACE[name].room, **{name: value})
    return config


def parse_names(text: str) -> tuple[str, ...]:
    """Settings to search, by name; all by default."""
    names = tuple(name.strip() for name in text.split(",") if name.strip()) or tuple(SPACE)
    for name in names:
        if name not in SPACE:
            raise ConfigError(f"{name!r} can't be searched: choose among {', '.join(SPACE)}.")
    return names


class Cut(Exception):
    """A training was not worth finishing."""


class Referee:
    """A display that reports how well a training does, and ends it when told that it is not worth its time."""

    def __init__(self, report: Callable[[float, int], bool], every_updates: int) -> None:
        self._report = report
        self._every = every_updates
        self._next = every_updates
        self.score = 0.0

    def update(self, record: dict[str, Any]) -> None:
        self.score = score(record)
        if record["update"] >= self._next:
            self._next += self._every
            if not self._report(self.score, record["update"]):
                raise Cut

    def say(self, line: str) -> None:
        """A trial's own lines are in its train.log."""


def score(record: dict[str, Any]) -> float:
    """The mean clear rate; before the first clear, a little for getting further, so that trials can be told apart."""
    return float(record["clear_rate_mean"] or 0.0) + 1e-6 * float(record["env_mean_x_pos"] or 0.0)


def run_trial(
    config: TrainConfig, number: int, values: dict[str, Any], referee: Referee
) -> tuple[float, Path]:
    """Train with these settings in a run folder of its own; the score at the end."""
    name = f"{config.run.run_name}-trial-{number:04d}"
    own = {"fresh": True, "until_clear_rate": 0.0, "record_video": False, "seed": config.run.seed + number}
    outcome = train(with_values(config.changed("run", run_name=name, **own), values), referee)
    if outcome.exit_code == EXIT_FAILED:
        # Diverged: a bad trial, not the end of the search.
        return 0.0, outcome.folder
    if outcome.exit_code:
        raise KeyboardInterrupt(outcome.exit_code - 128)
    return referee.score, outcome.folder
