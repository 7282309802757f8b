"""The newest checkpoint of a run at play, episode after episode, for whoever watches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpzone.agents.agent import Agent, from_json, load_agent
from warpzone.checkpoints.finding import find_resume
from warpzone.envs.actions import action_names
from warpzone.envs.config import StageConfig
from warpzone.envs.make import make_envs
from warpzone.envs.rewards import TERMS, RewardConfig
from warpzone.envs.stages import ALL_STAGES, GAME
from warpzone.envs.vector import ENDS, MarioVectorEnv
from warpzone.errors import CheckpointError
from warpzone.watch.panel.player import Shown, Wish

LINGER_FRAMES = 40
"""How long the last picture of an episode stays."""


def exhibit(folder: Path, wish: Wish) -> Iterator[Shown]:
    """Play for as long as pictures are asked for, always with the newest checkpoint at the start of an episode."""
    seed = 0
    while not wish.stop:
        agent, stages, settings = newest_agent(folder)
        stage = wish.stage if wish.stage in (*ALL_STAGES, GAME) else stages[seed % len(stages)]
        yield from _episode(agent, stage, settings, seed, wish)
        seed += 1


def newest_agent(folder: Path) -> tuple[Agent, list[str], dict[str, Any]]:
    """The agent of the run's newest sound checkpoint, its stages, and how it is paid."""
    newest = find_resume(folder)
    if newest is None:
        raise CheckpointError(
            f"{folder.name} has no checkpoint yet: the first is saved after some updates, or press Checkpoint."
        )
    agent = load_agent(str(newest.path), folder.parent, torch.device("cpu"), threads=1)
    assert agent.meta is not None
    config = json.loads(json.dumps(agent.meta.config))
    stage = from_json(StageConfig, config.get("stage", {}))
    reward = from_json(RewardConfig, config.get("reward", {}))
    return agent, stage.names(), {"reward": reward, "rom": stage.rom or None}


def _episode(agent: Agent, stage: str, settings: dict[str, Any], seed: int, wish: Wish) -> Iterator[Shown]:
    view = agent.view
    envs = make_envs(
        view, 1, [stage], threads=1, seed=seed, frame_skip=1, frame_stack=1, autoreset_mode="disabled",
        stall_limit=view.stall_limit * view.frame_skip, step_limit=0, pin_threads=False, **settings,
    )  # fmt: skip
    try:
        yield from _play(agent, envs, stage, seed, wish)
    finally:
        envs.close()


def _play(agent: Agent, envs: MarioVectorEnv, stage: str, seed: int, wish: Wish) -> Iterator[Shown]:
    assert agent.meta is not None
    view, names = agent.view, action_names(agent.view.action_type)
    agent.begin(1, seed, greedy=False)
    picture, _ = envs.reset(seed=seed)
    stack = deque([picture[0].copy()] * view.frame_stack, maxlen=view.frame_stack)
    start = np.ones(1, np.bool_)
    earned, over = 0.0, False
    while not over and wish.stage in ("", stage):
        actions, probabilities, values = agent.act(np.concatenate(list(stack))[None], start)
        start = np.zeros(1, np.bool_)
        terms = dict.fromkeys(TERMS, 0.0)
        thought = {
            "stage": stage,
            "actions": names,
            "action": int(actions[0]),
            "probabilities": [round(p, 4) for p in probabilities[0].tolist()],
            "value": round(float(values[0]), 4),
            "checkpoint_update": agent.meta.global_update,
            "episode": seed,
        }
        for held in range(1, view.frame_skip + 1):
            picture, reward, terminated, truncated, info = envs.step(actions)
            earned += float(reward[0])
            for name in TERMS:
                terms[name] += float(info["reward_terms"][name][0])
            over = bool(terminated[0] or truncated[0])
            # One picture for each decision: more would take time from a training on the same cores.
            if over or held == view.frame_skip:
                facts = {
                    **thought,
                    "x": int(info["x_pos"][0]),
                    "x_max": int(info["x_max"][0]),
                    "time": int(info["time"][0]),
                    "score": int(info["score"][0]),
                    "coins": int(info["coins"][0]),
                    "status": str(info["status"][0]),
                    "reward_terms": {name: round(value, 4) for name, value in terms.items()},
                    "return": round(earned, 3),
                    "cleared": bool(info["flag_get"][0]),
                    "end": ENDS[int(info["end"][0])] if over else "",
                }
                yield Shown(envs.screen(0).copy(), LINGER_FRAMES if over else held, facts)
            if over:
                break
        stack.append(picture[0].copy())
