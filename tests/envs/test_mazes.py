"""Mazes send the player back: ground is paid once, and a position before the first page is negative."""

from __future__ import annotations

import numpy as np

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
    envs = MarioVectorEnv(32, "7-4", noop_max=30, stall_limit=300)
    before, info = play_until_sent_back(envs, seed=0)
    row = int(np.flatnonzero((info["x_pos"] < before["x_pos"] - 512) & (info["steps"] > before["steps"]))[0])
    # The decision itself may have gone a few pixels further before it was sent back.
    assert 0 <= info["progress"][row] - before["progress"][row] < 20
    assert info["progress"][row] > 512
    assert info["x_max"][row] < 0x1000
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
