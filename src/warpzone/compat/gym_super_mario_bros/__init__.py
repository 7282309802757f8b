"""gym-super-mario-bros 7.4, on warpzone's engine."""

from warpzone.compat.gym_super_mario_bros._registration import make
from warpzone.compat.gym_super_mario_bros.smb_env import SuperMarioBrosEnv
from warpzone.compat.gym_super_mario_bros.smb_random_stages_env import SuperMarioBrosRandomStagesEnv

__all__ = ["SuperMarioBrosEnv", "SuperMarioBrosRandomStagesEnv", "make"]
