"""Settings of collecting."""

from __future__ import annotations

from dataclasses import dataclass

from warpzone.errors import ConfigError


@dataclass(frozen=True)
class CollectConfig:
    """How experience is gathered."""

    num_envs: int = 64
    """Environments that run at once."""
    rollout_steps: int = 32
    """Decisions each environment makes between two updates."""
    double_buffer: bool = False
    """Split the environments into two halves: one half is emulated while the policy decides for the other."""
    overlap_collect: bool = False
    """Collect the next rollout in a thread while the learner learns from the last, one update behind."""

    acting_graphs: bool = True
    """On CUDA, replay the decision of a policy without memory as one CUDA graph."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "rollout_steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.double_buffer and self.num_envs % 2:
            raise ConfigError(f"double_buffer needs an even number of environments, not {self.num_envs}.")
