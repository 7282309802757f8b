"""The environments' names in Gymnasium's registry."""

from __future__ import annotations

import gymnasium as gym

ID = "warpzone/SuperMarioBros-v0"
LOST_LEVELS_ID = "warpzone/SuperMarioBrosLostLevels-v0"


def register_all() -> None:
    """Register the ids once; `gymnasium.make_vec` gives the native vector, not N copies."""
    for name, lost_levels in ((ID, False), (LOST_LEVELS_ID, True)):
        if name not in gym.registry:
            gym.register(
                id=name,
                entry_point="warpzone.envs.single:MarioEnv",
                vector_entry_point="warpzone.envs.vector:MarioVectorEnv",
                kwargs={"lost_levels": lost_levels} if lost_levels else {},
            )
