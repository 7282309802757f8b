"""Schedules of learning rate and entropy: planned over the decisions of a run, and adapted to its progress."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

from warpzone.errors import ConfigError, require

ScheduleName = Literal["constant", "linear", "cosine"]


def scheduled(
    name: ScheduleName, done: int, total: int, start: float, final: float, *, step: int = 1, warmup: int = 0
) -> float:
    """The value of a schedule after `done` of `total` decisions; one update is `step` of them.

    The last update, at `total - step`, has the value `final`. The warm-up rises linearly and reaches `start`
    after `warmup` decisions. A schedule of unknown length (`total` 0) stays at `start`.
    """
    if done < warmup:
        return start * (done + step) / warmup
    if name == "constant" or total <= 0:
        return start
    span = max(1, total - step - warmup)
    fraction = min(1.0, (done - warmup) / span)
    if name == "cosine":
        fraction = 0.5 * (1 - math.cos(math.pi * fraction))
    return start + (final - start) * fraction


@dataclass(frozen=True)
class AdaptiveConfig:
    """Entropy coefficient and learning rate that adapt to recent progress."""

    adaptive_entropy: bool = False
    """Raise the entropy coefficient while progress stagnates, lower it otherwise."""
    adaptive_lr: bool = False
    """Lower the learning rate while progress falls."""
    adaptive_window: int = 50
    """Updates in each of the two windows compared."""
    adaptive_threshold: float = 0.02
    """Relative change between windows below which progress stagnates."""
    adaptive_cooldown: int = 50
    """Minimum updates between two changes."""
    adaptive_factor: float = 1.25
    """Factor of each change."""
    adaptive_entropy_min: float = 0.25
    """Minimum multiple of the scheduled entropy coefficient."""
    adaptive_entropy_max: float = 4.0
    """Maximum multiple of the scheduled entropy coefficient."""
    adaptive_lr_min: float = 0.1
    """Minimum multiple of the scheduled learning rate."""
    adaptive_lr_max: float = 1.0
    """Maximum multiple of the scheduled learning rate."""

    def __post_init__(self) -> None:
        require(self, "adaptive_window", at_least=1)
        require(self, "adaptive_cooldown", at_least=0)
        require(self, "adaptive_factor", above=1)
        bounds = {
            "adaptive_entropy": (self.adaptive_entropy_min, self.adaptive_entropy_max),
            "adaptive_lr": (self.adaptive_lr_min, self.adaptive_lr_max),
        }
        for name, (low, high) in bounds.items():
            if not 0 < low <= 1 <= high:
                raise ConfigError(f"{name}_min and {name}_max must enclose 1; they are {low} and {high}.")


class Adaptation:
    """Compares the last two windows of progress and answers with multiples of the scheduled values."""

    def __init__(self, config: AdaptiveConfig) -> None:
        self.config = config
        self.entropy_scale = 1.0
        self.lr_scale = 1.0
        self.progress: deque[float] = deque(maxlen=2 * config.adaptive_window)
        self.wait = 0

    def observe(self, progress: float) -> None:
        """Take in one update's progress (a return, a distance): any number that is better when larger."""
        self.progress.append(progress)
        self.wait = max(0, self.wait - 1)
        if self.wait or len(self.progress) < self.progress.maxlen:  # type: ignore[operator]
            return
        window = self.config.adaptive_window
        values = list(self.progress)
        before, now = sum(values[:window]) / window, sum(values[window:]) / window
        change = (now - before) / max(abs(before), 1e-8)
        if change > self.config.adaptive_threshold:
            self._scale(entropy=-1, lr=1)
        elif change < -self.config.adaptive_threshold:
            self._scale(entropy=1, lr=-1)
        else:
            self._scale(entropy=1, lr=0)

    def _scale(self, entropy: int, lr: int) -> None:
        config = self.config
        if config.adaptive_entropy:
            scale = self.entropy_scale * config.adaptive_factor**entropy
            self.entropy_scale = min(max(scale, config.adaptive_entropy_min), config.adaptive_entropy_max)
        if config.adaptive_lr:
            scale = self.lr_scale * config.adaptive_factor**lr
            self.lr_scale = min(max(scale, config.adaptive_lr_min), config.adaptive_lr_max)
        self.wait = config.adaptive_cooldown

    def state_dict(self) -> dict[str, Any]:
        return {
            "entropy_scale": self.entropy_scale,
            "lr_scale": self.lr_scale,
            "progress": list(self.progress),
            "wait": self.wait,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.entropy_scale = state["entropy_scale"]
        self.lr_scale = state["lr_scale"]
        self.progress = deque(state["progress"], maxlen=self.progress.maxlen)
        self.wait = state["wait"]
