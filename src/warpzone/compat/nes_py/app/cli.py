"""The `nes_py` command."""

from __future__ import annotations

import argparse

from warpzone.compat.nes_py.app.play_human import play_human
from warpzone.compat.nes_py.app.play_random import play_random
from warpzone.compat.nes_py.nes_env import NESEnv


def main() -> None:
    """Play a ROM by hand or at random."""
    parser = argparse.ArgumentParser(prog="nes_py", description="An NES environment on warpzone's engine.")
    parser.add_argument("--rom", "-r", required=True, help="path of the ROM")
    parser.add_argument("--mode", "-m", default="human", choices=["human", "random"], help="who plays")
    parser.add_argument("--steps", "-s", type=int, default=500, help="steps of random play")
    args = parser.parse_args()
    env = NESEnv(args.rom)
    if args.mode == "human":
        play_human(env)
    else:
        play_random(env, args.steps)


__all__ = ["main"]
