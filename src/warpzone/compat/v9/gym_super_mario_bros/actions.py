"""Lists of actions for JoypadSpace."""

from warpzone.compat.gym_super_mario_bros.actions import COMPLEX_MOVEMENT, RIGHT_ONLY, SIMPLE_MOVEMENT

__all__ = ["COMPLEX_MOVEMENT", "RIGHT_ONLY", "SIMPLE_MOVEMENT"]
