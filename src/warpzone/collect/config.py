"""Settings of collecting."""

from __future__ import annotations

from dataclasses import dataclass

from warpzone.errors import ConfigError


@dataclass(frozen=True)
class CollectConfig:
    """How rollouts are collected."""

    num_envs: int = 64
    """Number of environments."""
    rollout_steps: int = 32
    """Decisions per environment and update."""
    double_buffer: bool = False
    """Emulate one half of the environments while the policy acts for the other."""
    noisy_sticky: float = 0.0
    """Sticky probability in the second half of a --double-buffer run."""
    overlap_collect: bool = False
    """Collect the next rollout while learning from the last, one update behind."""

    acting_graphs: bool = True
    """Replay the decision of a feed-forward policy as a CUDA graph."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "rollout_steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.double_buffer and self.num_envs % 2:
            raise ConfigError(f"double_buffer needs an even number of environments, not {self.num_envs}.")
        if not 0.0 <= self.noisy_sticky <= 1.0:
            raise ConfigError(f"noisy_sticky is a probability from 0 to 1, not {self.noisy_sticky!r}.")
        if self.noisy_sticky and not self.double_buffer:
            raise ConfigError(
                "--noisy-sticky is for the second half of the environments: add --double-buffer."
            )
