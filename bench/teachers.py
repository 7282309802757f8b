"""What a teacher is worth: how often it clears its stage at lower temperatures (`--temperatures`), and on larger frames
that are reduced to its own size (`--shown 84`).

    python bench/teachers.py --agent agents/maze-7-4.safetensors --stage 7-4
    python bench/teachers.py --agent agents/maze-7-4.safetensors --stage 7-4 --temperatures 1 --shown 84
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import tyro

from warpzone.agents.agent import Agent, load_agent
from warpzone.envs.make import make_envs
from warpzone.learn.distillation import reduced

MOST_DECISIONS = 2000


@dataclass(frozen=True)
class Config:
    agent: str
    """A checkpoint, an exported agent or a run."""
    stage: str
    """Stage to play, from its true start."""
    temperatures: tuple[float, ...] = (1.0, 0.7, 0.5, 0.3)
    """Divisors of its logits."""
    shown: int = 0
    """Side of the frames that are reduced to the agent's size (0 = its own frames)."""
    episodes: int = 60
    """Episodes per temperature."""
    seed: int = 5
    """Random seed of idle frames and actions."""


def clear_rate(agent: Agent, config: Config, temperature: float) -> float:
    """Share of first episodes, one per environment, that clear the stage."""
    view = replace(agent.view, size=(config.shown, config.shown)) if config.shown else agent.view
    envs = make_envs(
        view, config.episodes, [config.stage], threads=0, seed=config.seed, frame_stack=view.frame_stack,
        autoreset_mode="same_step", rom=None,
    )  # fmt: skip
    observations, _ = envs.reset(seed=config.seed)
    random = torch.Generator().manual_seed(config.seed)
    done, cleared = np.zeros(config.episodes, bool), np.zeros(config.episodes, bool)
    for _ in range(MOST_DECISIONS):
        pictures = reduced(torch.from_numpy(observations.copy()), agent.view.size)
        with torch.no_grad():
            logits, _, _ = agent.policy.act(pictures)
        actions = torch.multinomial((logits / temperature).softmax(-1), 1, generator=random)
        observations, _, terminated, truncated, info = envs.step(actions.squeeze(1).numpy())
        ends = (terminated | truncated) & ~done
        if ends.any():
            cleared |= ends & info["final_info"]["flag_get"].astype(bool)
        done |= ends
        if done.all():
            break
    envs.close()
    return float(cleared.mean())


def main(config: Config) -> None:
    agent = load_agent(config.agent, Path("runs"), torch.device("cpu"), threads=torch.get_num_threads())
    shown = f"{config.shown}x{config.shown} reduced" if config.shown else "its own frames"
    for temperature in config.temperatures:
        rate = clear_rate(agent, config, temperature)
        print(
            f"{config.stage}, {shown}, temperature {temperature:g}: {rate:.1%} of {config.episodes}",
            flush=True,
        )


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
