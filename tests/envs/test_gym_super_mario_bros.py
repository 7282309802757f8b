"""Stages against gym-super-mario-bros itself: the same actions give the same infos and ends, a frame later there.

nes-py ends its step inside the game's interrupt handler, so what the engine says after frame k, it says after k + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpzone
from warpzone.envs.nes_py.patches import patch_nes_py
from warpzone.envs.rewards import NES_PY_REWARD

pytest.importorskip("gym_super_mario_bros")

KEYS = ("x_pos", "y_pos", "coins", "score", "life", "world", "stage", "status", "flag_get")
BUTTONS = [0, 0x80, 0x81, 0x82, 0x83, 0x01, 0x40]


def their_environment(stage: str) -> Any:
    patch_nes_py()
    from gym_super_mario_bros.smb_env import SuperMarioBrosEnv

    world, number = stage.split("-")
    env = SuperMarioBrosEnv(target=(int(world), int(number)))
    env.reset()
    return env


def actions(seed: int, count: int) -> list[int]:
    dice = np.random.default_rng(seed)
    out: list[int] = []
    while len(out) < count:
        out += [int(dice.choice([1, 2, 3, 3, 4, 4, 4]))] * int(dice.integers(2, 15))
    return out[:count]


@pytest.mark.parametrize("stage", ["1-1", "1-2", "2-2", "4-4", "7-3", "8-4"])
def test_a_stage_plays_the_same_frame_by_frame_to_its_end(stage: str) -> None:
    theirs = their_environment(stage)
    ours = warpzone.MarioVectorEnv(
        1, stage, frame_skip=1, frame_stack=1, autoreset_mode="disabled", threads=1
    )
    ours.reset(seed=0)
    told: list[dict[str, Any]] = []
    for k, action in enumerate([*actions(3, 220), 0]):
        *_, done, info = theirs.step(BUTTONS[action])
        if told:
            before = told[-1]
            assert {key: info[key] for key in KEYS} == {key: before[key] for key in KEYS}, f"frame {k}"
            assert bool(done) is before["done"], f"frame {k}"
            if done:
                break
        _, _, terminated, _, mine = (
            ours.step(np.array([action])) if not (told and told[-1]["done"]) else (0,) * 5
        )
        told.append({**{key: mine[key][0] for key in KEYS}, "done": bool(terminated[0])})
    assert len(told) > 60
    theirs.close()
    ours.close()


@pytest.mark.parametrize("stage", ["1-1", "8-1"])
def test_their_reward_is_ours_frame_by_frame_with_that_of_the_death(stage: str) -> None:
    """Their clock ticks two frames earlier than ours, so a tick is compared apart from the rest."""
    theirs = their_environment(stage)
    ours = warpzone.MarioVectorEnv(
        1, stage, frame_skip=1, frame_stack=1, autoreset_mode="disabled", threads=1, reward=NES_PY_REWARD
    )
    _, info = ours.reset(seed=0)
    given, expected, clock, their_clock = [], [], int(info["time"][0]), theirs.unwrapped._time
    done = False
    while not done and len(expected) < 300:
        _, reward, done, their_info = theirs.step(BUTTONS[3])
        expected.append((float(reward), their_info["time"] - their_clock))
        their_clock = their_info["time"]
        if not done:
            _, rewards, _, _, info = ours.step(np.array([3]))
            given.append((float(rewards[0]), int(info["time"][0]) - clock))
            clock = int(info["time"][0])
    assert given[-1][0] == expected[-1][0] == -15, "both end in a death"
    assert [a - tick for a, tick in given[:-1]] == [a - tick for a, tick in expected[1:-1]]
    assert sum(a for a, _ in given) == sum(a for a, _ in expected)
    theirs.close()
    ours.close()
