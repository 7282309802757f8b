"""The whole game without a death that an agent played, again, button by button."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from warpzone.agents.whole_game import GameCounter
from warpzone.envs.actions import action_buttons
from warpzone.envs.scripts import parse_sequence
from warpzone.envs.stages import ALL_STAGES
from warpzone.envs.vector import MarioVectorEnv

FRAME_SKIP = 4
FRAME_COUNTER = 0x09
WALK_IN = ("1-2", "2-2", "4-2", "7-2")
KEPT = Path(__file__).parents[2] / "docs" / "data" / "whole_game.json"


def count_at_the_first_tick(envs: MarioVectorEnv, actions: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Stages, and the game's count of frames where their clock goes from 400 to 399."""
    _, info = envs.reset(seed=0)
    for action in actions:
        count, left = int(envs.ram[0, FRAME_COUNTER]), info["time"][0]
        _, _, terminated, _, info = envs.step(np.array([action]))
        if left == 400 and info["time"][0] == 399:
            yield f"{info['world'][0]}-{info['stage'][0]}", count
        if terminated[0]:
            return


def pressed_in_the_game() -> list[int]:
    parts = parse_sequence(json.loads(KEPT.read_text(encoding="utf-8"))["sequence"])
    actions = {buttons: action for action, buttons in enumerate(action_buttons("complex"))}
    return [actions[part.buttons] for part in parts for _ in range(part.frames)]


def test_random_starts_behind_a_walk_in_have_the_games_count_of_frames() -> None:
    game = MarioVectorEnv(1, stage="game", frame_skip=1, action_type="complex", threads=1)
    counts = dict(count_at_the_first_tick(game, pressed_in_the_game()))
    game.close()
    for stage in WALK_IN:
        envs = MarioVectorEnv(1, stage=stage, frame_skip=1, random_start=1.0, threads=1)
        found = dict(count_at_the_first_tick(envs, [0] * 60))
        envs.close()
        assert abs(found[stage] - counts[stage]) <= 1  # the slow timer may be one frame apart


def test_it_passes_all_32_stages_in_their_order_without_a_death() -> None:
    envs = MarioVectorEnv(1, stage="game", frame_skip=1, action_type="complex", threads=1)
    _, info = envs.reset(seed=0)
    counter, stages = GameCounter(1), ["1-1"]
    pressed, played = pressed_in_the_game(), 0
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
