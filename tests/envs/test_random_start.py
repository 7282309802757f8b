"""Episodes that begin as if in the middle of a game."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone import MarioVectorEnv
from warpzone.engine.rom import identify, rom
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.errors import ConfigError

FRAME_COUNTER, INTERVAL, RANDOM = 0x09, 0x77F, slice(0x7A7, 0x7AE)
CLOCK = [FRAME_COUNTER, INTERVAL, *range(RANDOM.start, RANDOM.stop)]
MOST_FRAMES, RIGHT = 1 << 15, 1
ONE_UP_BLOCK, BLOCKS, BULLET_HEIGHT = 0x75D, slice(0x500, 0x6A0), 0xCF
PRE_LEVEL_TIMER, STACK = 0x7A0, range(0x100, 0x200)
BEHIND_WALK_IN = {"1-2": 36, "2-2": 56, "4-2": 36, "7-2": 56}

Ram = NDArray[np.uint8]
Clock = tuple[int, int, int]


def clock(ram: Ram) -> Clock:
    return int(ram[FRAME_COUNTER]), int(ram[INTERVAL]), int.from_bytes(ram[RANDOM].tobytes(), "big")


def a_frame_later(now: Clock) -> Clock:
    """What the game's interrupt handler does to its clock in a frame (the interval as in a European dump)."""
    count, interval, bits = now
    came_in = (bits >> 49 ^ bits >> 41) & 1
    return (count + 1) % 256, (interval - 1) % 18, bits >> 1 | came_in << 55


def test_the_clock_passes_as_in_the_game() -> None:
    dump = identify(rom())
    european = dump is not None and "Europe" in dump.name
    envs = MarioVectorEnv(1, stage="1-1", frame_skip=1)
    envs.reset(seed=0)
    expected = clock(envs.ram[0])
    for _ in range(150):
        envs.step(np.zeros(1, np.int64))
        expected = a_frame_later(expected)
        if not european:
            expected = expected[0], int(envs.ram[0][INTERVAL]), expected[2]
        assert clock(envs.ram[0]) == expected
    envs.close()


@pytest.mark.parametrize("stage", ["1-2", "2-2", "5-4"])
def test_random_numbers_and_slow_timer_are_those_of_another_moment(stage: str) -> None:
    plain = MarioVectorEnv(1, stage=stage)
    plain.reset(seed=0)
    start = plain.ram[0]
    reached, now = set(), clock(start)
    for _ in range(MOST_FRAMES):
        reached.add(now[2])
        now = a_frame_later(now)
    envs = MarioVectorEnv(32, stage=stage, random_start=1.0)
    first, _ = envs.reset(seed=0)
    found = [clock(ram) for ram in envs.ram]
    assert len({bits for _, _, bits in found} & reached) > 28
    # 0 where an area begins. Our plain start of a stage with a walk-in is earlier.
    assert {count for count, _, _ in found} == {BEHIND_WALK_IN.get(stage, int(start[FRAME_COUNTER]))}
    assert len({interval for _, interval, _ in found}) > 10
    again, _ = envs.reset(seed=0)
    assert [clock(ram) for ram in envs.ram] == found
    assert np.array_equal(first, again)
    plain.close()
    envs.close()


def test_nothing_else_differs_where_nothing_is_random_yet() -> None:
    plain, envs = MarioVectorEnv(1, stage="1-2"), MarioVectorEnv(32, stage="1-2", random_start=1.0)
    plain.reset(seed=0)
    envs.reset(seed=0)
    differing = np.flatnonzero((envs.ram != plain.ram).any(axis=0))
    # The slow timer counts down others.
    assert set(differing.tolist()) - set(STACK) <= {*CLOCK, PRE_LEVEL_TIMER}
    plain.close()
    envs.close()


def test_the_first_enemies_differ_where_they_are_random() -> None:
    envs = MarioVectorEnv(32, stage="5-3", random_start=1.0)
    envs.reset(seed=0)
    heights = set(envs.ram[:, BULLET_HEIGHT].tolist())
    assert len(heights) > 3
    envs.close()


def test_the_first_observation_is_what_the_screen_shows() -> None:
    envs = MarioVectorEnv(4, stage="5-3", random_start=1.0, size=(240, 256), observation="red", noop_max=3)
    observations, _ = envs.reset(seed=0)
    for env in range(4):
        assert np.array_equal(observations[env, -1], envs.screen(env)[..., 0])
    envs.close()


def test_a_share_of_the_episodes_has_it() -> None:
    envs = MarioVectorEnv(64, stage="1-1", random_start=0.5)
    envs.reset(seed=0)
    clocks = [clock(ram) for ram in envs.ram]
    assert 20 < max(map(clocks.count, clocks)) < 44  # the rest are all different
    assert len(set(clocks)) > 20
    envs.close()


def test_half_of_those_in_the_first_stage_of_a_world_lack_the_hidden_1_up_block() -> None:
    envs = MarioVectorEnv(64, stages=["2-1"], random_start=1.0)
    envs.reset(seed=0)
    has_block = envs.ram[:, ONE_UP_BLOCK] == 1
    assert 20 < has_block.sum() < 44
    for _ in range(40):
        envs.step(np.full(64, RIGHT))
    blocks = envs.ram[:, BLOCKS]
    with_it, without = blocks[has_block], blocks[~has_block]
    assert (with_it == with_it[0]).all()
    assert (without == without[0]).all()
    assert (with_it[0] != without[0]).sum() == 1  # the others are as they were
    envs.close()


def test_episodes_from_snapshots_have_it_and_restored_ones_do_not() -> None:
    envs = MarioVectorEnv(4, stage="1-1", random_start=1.0)
    envs.reset(seed=0)
    kept, was = envs.snapshot(0), clock(envs.ram[0])
    for env in range(4):
        envs.queue_start(env, kept)
    envs.reset()
    assert len({clock(ram) for ram in envs.ram}) == 4
    envs.restore(0, kept)
    assert clock(envs.ram[0]) == was
    envs.close()


def test_a_fixed_view_has_no_randomness() -> None:
    view = ViewConfig(random_start=1.0, noop_max=30, sticky=0.25, stall_limit=7, frame_skip_noise=1)
    assert view.fixed(frame_skip=1) == ViewConfig(stall_limit=7, frame_skip=1)


def test_nes_py_refuses_it() -> None:
    with pytest.raises(ConfigError, match="leave --random-start out"):
        BackendVectorEnv(1, ["1-1"], view=ViewConfig(random_start=1.0))
