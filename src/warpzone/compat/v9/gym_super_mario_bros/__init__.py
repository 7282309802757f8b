"""gym-super-mario-bros 9, on warpzone's engine. Its other games are not here; the stages of version 7 are."""

import gymnasium

from warpzone.compat.ids import IDS, MAX_EPISODE_STEPS
from warpzone.compat.v9.gym_super_mario_bros.smb_env import SuperMarioBrosEnv, SuperMarioBrosRandomStagesEnv

__all__ = ["SuperMarioBrosEnv", "SuperMarioBrosRandomStagesEnv", "make"]

make = gymnasium.make

# Stages of the first game have a second name, without the hyphen in front.
_ALIASES = {
    _id.replace("Bros-", "Bros"): _entry
    for _id, _entry in IDS.items()
    if _id.startswith("SuperMarioBros-") and "target" in _entry.arguments
}

for _id, _entry in {**IDS, **_ALIASES}.items():
    if _id not in gymnasium.registry:
        gymnasium.register(
            id=_id,
            entry_point=f"{__name__}:SuperMarioBros{'RandomStages' if _entry.random else ''}Env",
            max_episode_steps=MAX_EPISODE_STEPS,
            reward_threshold=MAX_EPISODE_STEPS,
            nondeterministic=True,
            disable_env_checker=True,
            kwargs=dict(_entry.arguments),
        )
