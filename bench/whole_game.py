"""Plays whole games as `warpzone eval --stages game` does, and keeps the buttons of the first that is finished without
a death, as `--scripted-sequence` takes them.

python bench/whole_game.py --checkpoint agents/thirty-two.safetensors [--episodes 100] [--seed 12345] --out FILE.json

tests/agents/test_flawless_game.py plays the file again. Exits with 1 if no game was finished without a death.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import tyro
from rich.console import Console

from warpzone.agents.agent import load_agent
from warpzone.agents.evaluation import Trial, trial_envs
from warpzone.agents.play import play
from warpzone.agents.whole_game import MOST_DECISIONS, GameCounter
from warpzone.cli.bench_results import write_json
from warpzone.envs.config import cores
from warpzone.envs.stages import GAME
from warpzone.starts.trails import sequence_of

SAY_EVERY = 500


@dataclass(frozen=True)
class Config:
    checkpoint: str
    """Checkpoint, agent file or run."""
    out: Path
    """JSON file for the game."""
    episodes: int = 100
    """Games that are played at once."""
    seed: int = 12345
    """Random seed of the evaluation."""


def main(config: Config) -> None:
    agent = load_agent(config.checkpoint, Path("runs"), torch.device("cpu"), cores())
    if agent.view.action_type != "complex":
        sys.exit("The agent needs the complex action set, in which games are written down.")
    trial = Trial(config.episodes, seed=config.seed)
    view = replace(trial.view(agent.view), stall_limit=0, step_limit=MOST_DECISIONS)
    playing, taken, idle = np.ones(config.episodes, np.bool_), [], np.zeros(0)
    with trial_envs(view, GAME, config.episodes, trial) as envs:
        counter = GameCounter(config.episodes)
        for step in play(agent, envs, seed=trial.seed, greedy=False, rows=playing):
            if not taken:
                idle = step.info["frames"] - view.frame_skip
            taken.append(step.actions.astype(np.uint8))
            counter.look(step.final)
            for i in np.flatnonzero(step.over & playing).tolist():
                game = counter.game(i, step.final)
                playing[i] = False
                if game.finished and game.deaths == 0:
                    sequence = sequence_of([int(actions[i]) for actions in taken], view.frame_skip)
                    start = f"NOOP:{int(idle[i])}," if idle[i] else ""
                    found = {"game": i, **asdict(game), "sequence": start + sequence}
                    return write_json(config.out, "whole_game.json", found, Console())
            if not playing.any():
                sys.exit(1)
            if len(taken) % SAY_EVERY == 0:
                print(f"{len(taken):,} decisions, {playing.sum()} games are played", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Config))
