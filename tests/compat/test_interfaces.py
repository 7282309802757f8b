"""What `make` gives in the two interfaces, and what scripts do with it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import warpzone.compat.gym_super_mario_bros as seven
import warpzone.compat.v9.gym_super_mario_bros as nine
from warpzone.compat.gym7 import gym
from warpzone.compat.gym_super_mario_bros.actions import COMPLEX_MOVEMENT, RIGHT_ONLY, SIMPLE_MOVEMENT
from warpzone.compat.ids import IDS
from warpzone.compat.nes_py import NESEnv
from warpzone.compat.nes_py.wrappers import JoypadSpace
from warpzone.compat.v9.nes_py.wrappers import JoypadSpace as JoypadSpace9


def test_four_values() -> None:
    env = JoypadSpace(seven.make("SuperMarioBros-1-1-v0"), SIMPLE_MOVEMENT)
    assert isinstance(env, gym.Env)
    assert env.spec.id == "SuperMarioBros-1-1-v0"
    frame = env.reset()
    assert frame.shape == (240, 256, 3)
    step = env.step(1)
    assert len(step) == 4
    assert step[0] is env.unwrapped.screen
    assert env.get_action_meanings() == ["NOOP", "right", "right A", "right B", "right A B", "A", "left"]
    assert env.render(mode="rgb_array").shape == (240, 256, 3)
    assert env.unwrapped.ram.shape == (2048,)
    assert set(env.get_keys_to_action().values()) == set(range(7))
    env.close()


@pytest.mark.parametrize("flag", ["apply_api_compatibility", "new_step_api"])
def test_five_values(flag: str) -> None:
    env = JoypadSpace(
        seven.make("SuperMarioBros-1-1-v0", render_mode="rgb_array", **{flag: True}), RIGHT_ONLY
    )
    frame, info = env.reset(seed=42)
    assert frame.shape == (240, 256, 3)
    assert info == {}
    _, reward, done, truncated, info = env.step(action=0)
    assert (reward, done, truncated) == (0.0, False, False)
    assert info["x_pos"] == 40
    assert env.render().shape == (240, 256, 3)


def test_gymnasium() -> None:
    env = JoypadSpace9(nine.make("SuperMarioBros-1-1-v0", render_mode="rgb_array"), COMPLEX_MOVEMENT)
    assert isinstance(env, gymnasium.Env)
    frame, info = env.reset(seed=1)
    assert frame.shape == (240, 256, 3)
    assert info["x_pos"] == 40
    assert len(env.step(1)) == 5
    rendered: Any = env.render()
    assert rendered.shape == (240, 256, 3)
    env.close()


def test_the_rules_of_version_nine() -> None:
    env = nine.SuperMarioBrosEnv(target=(1, 1))
    _, info = env.reset()
    assert info["task_id"] == "SuperMarioBros-1-1-v0"
    assert info["reward_components"] == dict.fromkeys(info["reward_components"], 0.0)
    keep = {"game": "smb1", "single_stage": True, "target_world": 1, "target_stage": 1, "world_label": "1"}
    total = 0.0
    for _ in range(40):
        _, reward, terminated, truncated, info = env.step(128)
        assert reward == info["reward_total_clipped"]
        assert info["reward_total_unclipped"] == sum(info["reward_components"].values())
        total += info["reward_components"]["progress"]
    assert (terminated, truncated) == (False, False)
    assert {key: info[key] for key in keep} == keep
    assert total == info["progress_max"] - 40 > 0
    best = info["x_pos_max"]
    for _ in range(30):  # back, and forth again: nothing for where it has been
        components = env.step(64)[4]["reward_components"]
        if env._x_position < best:
            assert components["progress"] == 0
    env.ram[0x07EE] += 1  # a coin
    env.ram[0x0756] = 1  # a mushroom
    env.ram[0x07DF] += 1  # 10,000 points
    _, reward, _, _, info = env.step(0)
    assert {key: info["reward_components"][key] for key in ("coins", "powerup", "score")} == {
        "coins": 5.0,
        "powerup": 5.0,
        "score": 100.0,
    }
    assert reward == 15
    env.ram[0x00B5] = 2  # below the screen
    _, reward, terminated, _, info = env.step(0)
    assert info["reward_components"]["death"] == -25
    assert (terminated, info["death"]) == (True, True)
    with pytest.raises(ValueError, match="cannot step in a done environment"):
        env.step(0)


def test_version_nine_asks_its_own_hooks_for_the_end() -> None:
    class Short(nine.SuperMarioBrosEnv):
        def _get_terminated(self) -> bool:
            return self._x_position > 41

        def _get_truncated(self) -> bool:
            return self._time < 399

    env = Short(target=(1, 1))
    env.reset()
    ends = [env.step(128)[2:4] for _ in range(2)]
    assert ends == [(False, False)] * 2
    while not env.done:
        end = env.step(128)[2:4]
    assert end == (True, False)


def test_stages_have_a_second_name_in_version_nine() -> None:
    env = nine.make("SuperMarioBros4-2-v0")
    assert env.reset()[1]["world"] == 4


def test_the_step_limit_and_the_order_of_calls() -> None:
    env = seven.make("SuperMarioBros-1-1-v0", max_episode_steps=3)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset()
    steps = [env.step(0) for _ in range(3)]
    assert [step[2] for step in steps] == [False, False, True]
    assert steps[-1][3]["TimeLimit.truncated"]


def test_other_environments_get_all_that_make_was_given() -> None:
    env = seven.make("CartPole-v1", 3, render_mode="rgb_array")
    assert env.spec.max_episode_steps == 3
    assert env.render_mode == "rgb_array"


def test_unknown_ids_and_actions() -> None:
    with pytest.raises(gym.error.Error):
        seven.make("SuperMarioBros-9-1-v0")
    env = JoypadSpace(seven.make("SuperMarioBros-1-1-v0"), RIGHT_ONLY)
    env.reset()
    with pytest.raises(KeyError):
        env.step(5)
    with pytest.raises((OverflowError, ValueError)):
        env.unwrapped.step(256)
    with pytest.raises(KeyError):
        JoypadSpace(env, [["jump"]])


def test_every_id_has_its_rom() -> None:
    assert len(IDS) == 4 * (2 + 32) + 2 * (1 + 16)
    for name in (
        "SuperMarioBros-v1",
        "SuperMarioBros-4-2-v2",
        "SuperMarioBros2-v1",
        "SuperMarioBros2-4-4-v0",
    ):
        env = seven.make(name)
        info = (env.reset(), env.step(0))[1][3]
        assert info["time"] > 0
        target = IDS[name].arguments.get("target", (1, 1))
        assert (info["world"], info["stage"]) == target


def test_the_same_seed_draws_the_same_stages() -> None:
    stages = ["1-1", "3-2", "8-4"]
    drawn = []
    for _ in range(2):
        env = seven.make("SuperMarioBrosRandomStages-v0", stages=stages)
        env.reset(seed=5)
        worlds = []
        for _ in range(4):
            worlds.append(env.step(0)[3]["world"])
            env.reset()
        env.reset(options={"stages": ["2-2"]})
        assert env.step(0)[3]["world"] == 2
        drawn.append(worlds)
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) <= {1, 3, 8}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"NOPE", "magic number"),
        (b"NES\x1a\x02\x01\x01\x00\x00\x00\x00\x01", "zero fill"),
        (b"NES\x1a\x00\x01\x01", "no PRG-ROM"),
        (b"NES\x1a\x02\x01\x05", "trainer"),
        (b"NES\x1a\x02\x01\x01\x00\x00\x01", "PAL"),
        (b"NES\x1a\x02\x01\x41", "mapper number 4"),
        (b"NES\x1a\x02\x01\x11", "mapper 1"),
    ],
)
def test_bad_roms(tmp_path: Any, header: bytes, message: str) -> None:
    path = tmp_path / "game.nes"
    path.write_bytes(header.ljust(16, b"\0") + bytes(0x8000 + 0x2000))
    with pytest.raises(ValueError, match=message):
        NESEnv(str(path))
    with pytest.raises(ValueError, match="non-existent"):
        NESEnv(str(tmp_path / "none.nes"))
    with pytest.raises(TypeError):
        NESEnv(path)  # type: ignore[arg-type]


def test_frames_are_laid_out_as_in_nes_py() -> None:
    env = seven.SuperMarioBrosEnv(target=(1, 1))
    frame = env.reset()
    assert frame.strides == (1024, 4, -1)
    assert not np.shares_memory(np.ascontiguousarray(frame), frame)
