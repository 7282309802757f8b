"""The `gym_super_mario_bros` command."""

from __future__ import annotations

import argparse

from warpzone.compat.gym_super_mario_bros._registration import make
from warpzone.compat.gym_super_mario_bros.actions import COMPLEX_MOVEMENT, RIGHT_ONLY, SIMPLE_MOVEMENT
from warpzone.compat.nes_py.app.play_human import play_human
from warpzone.compat.nes_py.app.play_random import play_random
from warpzone.compat.nes_py.wrappers import JoypadSpace

ACTION_SPACES = {"right": RIGHT_ONLY, "simple": SIMPLE_MOVEMENT, "complex": COMPLEX_MOVEMENT}


def main() -> None:
    """Play an environment by hand or at random."""
    parser = argparse.ArgumentParser(
        prog="gym_super_mario_bros", description="Super Mario Bros on warpzone's engine."
    )
    parser.add_argument("--env", "-e", default="SuperMarioBros-v0", help="id of the environment")
    parser.add_argument("--mode", "-m", default="human", choices=["human", "random"], help="who plays")
    parser.add_argument(
        "--actionspace", "-a", default="nes", choices=["nes", *ACTION_SPACES], help="actions to choose from"
    )
    parser.add_argument("--steps", "-s", type=int, default=500, help="steps of random play")
    parser.add_argument("--stages", "-S", nargs="+", help="stages of a RandomStages environment")
    args = parser.parse_args()
    if args.stages is not None and "RandomStages" not in args.env:
        parser.exit(1, "--stages,-S should only be specified for RandomStages environments\n")
    env = make(args.env) if args.stages is None else make(args.env, stages=args.stages)
    if args.actionspace != "nes":
        env = JoypadSpace(env, ACTION_SPACES[args.actionspace])
    if args.mode == "human":
        play_human(env)
    else:
        play_random(env, args.steps)


__all__ = ["main"]
