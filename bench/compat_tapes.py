"""Plays a trained agent on warpzone.compat and keeps the buttons of the episodes that reach the flag.

    python bench/compat_tapes.py agents/thirty-two.safetensors --out bench/compat_tapes.json

`bench/compat_equivalence.py` plays them on the original too.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpzone.agents.agent import Agent, load_agent
from warpzone.compat.gym_super_mario_bros import SuperMarioBrosEnv
from warpzone.compat.gym_super_mario_bros.actions import COMPLEX_MOVEMENT
from warpzone.compat.joypad import Joypad
from warpzone.envs.nes_py.preprocessing import Preprocessor


def play(agent: Agent, env: Any, seed: int, longest: int) -> list[int] | None:
    """The bytes pressed up to the flag, or None."""
    joypad = Joypad()
    joypad._map_actions(COMPLEX_MOVEMENT)
    see = Preprocessor(agent.view)
    agent.begin(1, seed, greedy=False)
    env.reset()
    stack = np.repeat(see(env.screen), agent.view.frame_stack, axis=0)
    tape: list[int] = []
    first = True
    while len(tape) < longest:
        actions, _, _ = agent.act(stack[None], np.array([first]))
        first = False
        for _ in range(agent.view.frame_skip):
            tape.append(joypad._action_map[int(actions[0])])
            _, _, done, info = env.step(tape[-1])
            if done:
                return tape if info["flag_get"] else None
        frame = see(env.screen)
        stack = np.concatenate([stack[len(frame) :], frame])
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent")
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--longest", type=int, default=3000, help="steps of an episode")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    agent = load_agent(args.agent, Path("runs"), torch.device("cpu"))
    tapes = {}
    for world, stage in itertools.product(range(1, 9), range(1, 5)):
        env = SuperMarioBrosEnv(target=(world, stage))
        for seed in range(args.tries):
            tape = play(agent, env, seed, args.longest)
            if tape is not None:
                pairs = [[byte, len(list(run))] for byte, run in itertools.groupby(tape)]
                tapes[f"{world}-{stage}"] = pairs
                break
        print(f"{world}-{stage}", len(tape) if tape else None, flush=True)
        report = {"agent": Path(args.agent).name, "tapes": tapes}
        args.out.write_text(json.dumps(report).replace(', "', ',\n "') + "\n")


if __name__ == "__main__":
    main()
