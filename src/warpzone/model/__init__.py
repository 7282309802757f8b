"""The policy network: encoder, memory, heads."""

from warpzone.model.config import ModelConfig
from warpzone.model.memory import State
from warpzone.model.policy import Policy, build_policy
from warpzone.model.snapshot import Snapshot, take_snapshot

__all__ = ["ModelConfig", "Policy", "Snapshot", "State", "build_policy", "take_snapshot"]
