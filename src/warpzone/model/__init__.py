"""The policy network: encoder, memory, heads."""

from warpzone.model.config import ModelConfig
from warpzone.model.memory import State
from warpzone.model.policy import Policy, build_policy

__all__ = ["ModelConfig", "Policy", "State", "build_policy"]
