"""Settings of collecting."""

from __future__ import annotations

from dataclasses import dataclass

from warpzone.errors import ConfigError, require


@dataclass(frozen=True)
class CollectConfig:
    """How rollouts are collected."""

    num_envs: int = 64
    """Number of environments."""
    rollout_steps: int = 32
    """Decisions per environment and update."""
    double_buffer: bool = False
    """Emulate one half of the environments while the policy acts for the other."""
    env_groups: int = 2
    """Groups of environments that take turns with --double-buffer or --cluster."""
    noisy_sticky: float = 0.0
    """Sticky probability per frame in half of the environments (with --double-buffer)."""
    overlap_collect: bool = False
    """Collect the next rollout during learning, with weights one update old."""

    acting_graphs: bool = True
    """Replay the decision of a feed-forward policy as a CUDA graph."""

    def __post_init__(self) -> None:
        require(self, "num_envs", "rollout_steps", at_least=1)
        require(self, "noisy_sticky", at_least=0, at_most=1)
        if self.env_groups not in (2, 4, 6, 8):
            raise ConfigError(f"--env-groups must be 2, 4, 6 or 8, not {self.env_groups}.")
        if self.num_envs % self.groups:
            what = "an even number of environments" if self.groups == 2 else f"a multiple of {self.groups}"
            raise ConfigError(f"double_buffer needs {what}, not {self.num_envs}.")
        if self.noisy_sticky and not self.double_buffer:
            raise ConfigError(
                "--noisy-sticky is for the second half of the environments: add --double-buffer."
            )

    @property
    def groups(self) -> int:
        """How many groups of environments take turns."""
        return self.env_groups if self.double_buffer else 1
