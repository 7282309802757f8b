"""The whole game without a death that an agent played, again, button by button."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from warpzone.agents.whole_game import GameCounter
from warpzone.envs.actions import action_buttons
from warpzone.envs.scripts import parse_sequence
from warpzone.envs.stages import ALL_STAGES
from warpzone.envs.vector import MarioVectorEnv

FRAME_SKIP = 4
KEPT = Path(__file__).parents[2] / "docs" / "data" / "whole_game.json"


def test_it_passes_all_32_stages_in_their_order_without_a_death() -> None:
    parts = parse_sequence(json.loads(KEPT.read_text(encoding="utf-8"))["sequence"])
    actions = {buttons: action for action, buttons in enumerate(action_buttons("complex"))}
    envs = MarioVectorEnv(1, stage="game", frame_skip=1, action_type="complex", threads=1)
    _, info = envs.reset(seed=0)
    counter, stages = GameCounter(1), ["1-1"]
    pressed = [actions[part.buttons] for part in parts for _ in range(part.frames)]
    played = 0
    for action in pressed:
        _, _, terminated, _, info = envs.step(np.array([action]))
        played += 1
        counter.look(info)
        stage = f"{info['world'][0]}-{info['stage'][0]}"
        if stage != stages[-1]:
            stages.append(stage)
        if terminated[0]:
            break
    envs.close()
    assert len(pressed) - played < FRAME_SKIP  # it ends within its last decision
    game = counter.game(0, info)
    assert (game.finished, game.deaths, game.warps, game.passed_without_death) == (True, 0, 0, 32)
    assert stages == list(ALL_STAGES)
