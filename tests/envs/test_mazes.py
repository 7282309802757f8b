"""Mazes send the player back: ground is paid once, a position before the first page is negative, and it costs."""

from __future__ import annotations

import numpy as np

from warpzone.envs.rewards import RewardConfig
from warpzone.envs.vector import MarioVectorEnv

PAGE_X, PIXEL_X = 0x6D, 0x86
RUN, RUN_AND_JUMP = 3, 4


def play_until_sent_back(
    envs: MarioVectorEnv, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random runs through 7-4 until the maze sends someone back; what was told before and after."""
    dice = np.random.default_rng(seed)
    _, info = envs.reset(seed=seed)
    for _ in range(3000):
        before = info
        _, _, terminated, truncated, info = envs.step(
            dice.choice([RUN, RUN_AND_JUMP, RUN_AND_JUMP], envs.num_envs)
        )
        back = (
            (info["x_pos"] < before["x_pos"] - 512)
            & ~terminated
            & ~truncated
            & (info["steps"] > before["steps"])
        )
        if back.any():
            return before, info
    raise AssertionError("nobody came as far as the maze's first fork")


def test_ground_is_paid_once_however_often_a_maze_sends_back() -> None:
    envs = MarioVectorEnv(
        32, "7-4", noop_max=30, stall_limit=300, reward=RewardConfig(reward_wrong_turn=50.0)
    )
    before, info = play_until_sent_back(envs, seed=0)
    row = int(np.flatnonzero((info["x_pos"] < before["x_pos"] - 512) & (info["steps"] > before["steps"]))[0])
    # The decision itself may have gone a few pixels further before it was sent back.
    assert 0 <= info["progress"][row] - before["progress"][row] < 20
    assert info["progress"][row] > 512
    assert info["x_max"][row] < 0x1000
    assert info["wrong_turns"][row] > before["wrong_turns"][row]
    assert info["reward_terms"]["maze"][row] == -1
    ram = envs.ram[row]
    assert info["x_pos"][row] == int(ram[PAGE_X].astype(np.int8)) * 256 + int(ram[PIXEL_X])

    blob = envs.snapshot(row)
    envs.queue_start(0, blob)
    assert envs.snapshot(row) == blob
    envs.reset(options={"reset_mask": np.arange(32) == 0})
    _, rewards, _, _, again = envs.step(np.full(32, RUN))
    assert again["from_snapshot"][0] == 1
    assert again["progress"][0] == info["progress"][row]
    assert rewards[0] == 0
    envs.close()


def test_wrong_turns_are_those_of_the_games_own_counters() -> None:
    """Frame by frame through 7-4: a turn is wrong where a part is passed and not counted as right, or leads back."""
    envs = MarioVectorEnv(16, "7-4", frame_skip=1, noop_max=30)
    dice = np.random.default_rng(5)
    _, info = envs.reset(seed=5)
    seen = {"back": 0, "wrong": 0, "right": 0}
    for frame in range(2000):
        if frame % 4 == 0:
            actions = dice.choice([RUN, RUN, RUN_AND_JUMP, RUN_AND_JUMP], envs.num_envs)
        before = info
        _, _, terminated, _, info = envs.step(actions)
        passed = info["loop_parts_passed"] > before["loop_parts_passed"]
        right = info["loop_parts_right"] > before["loop_parts_right"]
        back = info["x_pos"] < before["x_pos"] - 256
        lives = ~terminated & (info["steps"] > before["steps"])
        expected = ((passed & ~right) | back) & lives
        turned = info["wrong_turns"] - before["wrong_turns"]
        np.testing.assert_array_equal(turned[lives], expected[lives].astype(np.int32))
        seen["back"] += int((back & lives).sum())
        seen["wrong"] += int((passed & ~right & lives).sum())
        seen["right"] += int((passed & right & lives).sum())
    assert all(seen.values()), seen
    envs.close()


def test_a_room_behind_a_pipe_is_no_wrong_turn() -> None:
    envs = MarioVectorEnv(16, "1-1", action_type="complex", noop_max=30, stall_limit=200)
    dice = np.random.default_rng(2)
    envs.reset(seed=2)
    rooms = 1
    for _ in range(1200):
        # Often "down", on which pipes lead away.
        _, _, _, _, info = envs.step(dice.choice([3, 4, 4, 10, 10], envs.num_envs))
        rooms = max(rooms, int(info["rooms_seen"].max()))
        assert not info["wrong_turns"].any()
    assert rooms > 1
    envs.close()
