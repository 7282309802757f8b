"""Settings of a run's checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from warpzone.errors import require


@dataclass(frozen=True)
class CheckpointPolicy:
    """When to save and how much to keep."""

    latest_every_updates: int = 50
    """Save `latest` every N updates (0 = never)."""
    latest_every_s: float = 300.0
    """Save `latest` every N seconds (0 = never)."""
    step_every_updates: int = 1000
    """Save a numbered checkpoint every N updates (0 = never)."""
    keep: int = 5
    """Numbered checkpoints to keep (0 = all)."""

    def __post_init__(self) -> None:
        require(self, "latest_every_updates", "latest_every_s", "step_every_updates", "keep", at_least=0)
