"""The newest checkpoint of a run plays episode after episode, for the live page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from warpzone import custom_code
from warpzone.agents.agent import Agent, load_agent
from warpzone.agents.play import Step, play_frames
from warpzone.checkpoints.finding import find_resume
from warpzone.checkpoints.settings import from_json
from warpzone.envs.actions import action_names
from warpzone.envs.config import StageConfig
from warpzone.envs.rewards import TERMS, RewardConfig
from warpzone.envs.stages import ALL_STAGES, GAME
from warpzone.envs.telemetry import ENDS
from warpzone.errors import CheckpointError
from warpzone.watch.panel.player import Shown, Wish

LINGER_FRAMES = 40
"""Frames for which the last screen of an episode stays."""


def exhibit(folder: Path, wish: Wish, *, trust_code: bool = False) -> Iterator[Shown]:
    """Play until stopped; each episode uses the newest checkpoint."""
    seed = 0
    while not wish.stop:
        agent, stages, settings = newest_agent(folder, trust_code=trust_code)
        stage = wish.stage if wish.stage in (*ALL_STAGES, GAME) else stages[seed % len(stages)]
        yield from _episode(agent, stage, settings, seed, wish)
        seed += 1


def newest_agent(folder: Path, *, trust_code: bool = False) -> tuple[Agent, list[str], dict[str, Any]]:
    """The agent of the run's newest sound checkpoint, its stages and its rewards."""
    newest = find_resume(folder)
    if newest is None:
        raise CheckpointError(
            f"{folder.name} has no checkpoint yet: the first is saved after some seconds of training."
        )
    agent = load_agent(str(newest.path), folder.parent, torch.device("cpu"), trust_code=trust_code)
    assert agent.meta is not None
    config = agent.meta.config
    stage = from_json(StageConfig, config.get("stage", {}))
    reward = from_json(RewardConfig, config.get("reward", {}))
    if reward.reward_function and trust_code:
        custom_code.trust(reward.reward_function, folder)
    elif reward.reward_function and not custom_code.is_named(reward.reward_function):
        reward = replace(reward, reward_function="")
    return agent, stage.names(), {"reward": reward, "rom": stage.rom or None}


def _reward_note(agent: Agent, reward: RewardConfig) -> str:
    """What is to be said of the rewards that are shown: nothing if they are those of the training."""
    own = agent.meta.config.get("reward", {}).get("reward_function", "") if agent.meta else ""
    return "" if not own or reward.reward_function else "built in; for this run's own: --trust-code"


def _episode(agent: Agent, stage: str, settings: dict[str, Any], seed: int, wish: Wish) -> Iterator[Shown]:
    assert agent.meta is not None
    view, names = agent.view, action_names(agent.view.action_type)
    terms, earned = dict.fromkeys(TERMS, 0.0), 0.0
    note = _reward_note(agent, settings["reward"])
    for step, envs in play_frames(agent, view, stage, seed=seed, **settings):
        if step.held == 1:
            if wish.stage not in ("", stage):
                return
            terms = dict.fromkeys(TERMS, 0.0)
        earned += float(step.rewards[0])
        for name in TERMS:
            terms[name] += float(step.info["reward_terms"][name][0])
        over = bool(step.over[0])
        # One screen for each decision: more would take time from a training on the same cores.
        if over or step.held == view.frame_skip:
            facts = {
                "stage": stage,
                "actions": names,
                "checkpoint_update": agent.meta.global_update,
                "episode": seed,
                **_facts(step, over),
                "reward_terms": {name: round(value, 4) for name, value in terms.items()},
                "return": round(earned, 3),
                "reward_note": note,
            }
            yield Shown(envs.screen(0).copy(), LINGER_FRAMES if over else step.held, facts)


def _facts(step: Step, over: bool) -> dict[str, Any]:
    info = step.info
    numbers = {"x": "x_pos", "x_max": "x_max", "time": "time", "score": "score", "coins": "coins"}
    return {
        "action": int(step.actions[0]),
        "probabilities": [round(p, 4) for p in step.probabilities[0].tolist()],
        "value": round(float(step.values[0]), 4),
        **{name: int(info[field][0]) for name, field in numbers.items()},
        "status": str(info["status"][0]),
        "cleared": bool(info["flag_get"][0]),
        "end": ENDS[int(info["end"][0])] if over else "",
    }
