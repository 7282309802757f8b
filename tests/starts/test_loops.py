"""Loops of random play that a solution does not need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from warpzone.envs.actions import action_names
from warpzone.envs.telemetry import ENDS
from warpzone.envs.vector import MarioVectorEnv
from warpzone.starts.exploration import cells_of
from warpzone.starts.loops import _loops, without_loops
from warpzone.starts.trails import Trail

NOOP, LEFT = (action_names("complex").index(name) for name in ("NOOP", "LEFT"))
ENOUGH = 1 << 15


@pytest.fixture
def envs() -> Iterator[MarioVectorEnv]:
    made = MarioVectorEnv(
        8, "1-1", action_type="complex", frame_stack=1, size=(8, 8), autoreset_mode="disabled", noop_max=0
    )
    made.reset(seed=0)
    yield made
    made.close()


def clears(envs: MarioVectorEnv, start: bytes, actions: list[int]) -> bool:
    """Whether the last of the actions, and none before, clears the stage."""
    envs.restore_many(dict.fromkeys(range(envs.num_envs), start))
    for i, action in enumerate(actions):
        _, _, terminated, _, info = envs.step(np.full(envs.num_envs, action))
        if terminated[0]:
            return i + 1 == len(actions) and ENDS[info["end"][0]] == "flag"
    return False


def test_waiting_that_is_not_needed_is_left_out(envs: MarioVectorEnv, trail: Trail) -> None:
    start, actions = envs.snapshot(0), trail.actions()
    assert clears(envs, start, actions)
    waiting = [NOOP] * 20 + actions
    shorter = without_loops(envs, start, waiting, cells_of, ENOUGH)
    assert len(shorter) <= len(actions)
    assert clears(envs, start, shorter)


def test_what_is_left_clears_the_stage_whatever_counts_as_the_same_place(
    envs: MarioVectorEnv, trail: Trail
) -> None:
    start, actions = envs.snapshot(0), trail.actions()
    # Nearly every loop of these is needed.
    shorter = without_loops(envs, start, actions, lambda ram: ram[:, 0x0086].astype(np.int64) // 64, ENOUGH)
    assert clears(envs, start, shorter)
    assert len(shorter) <= len(actions)


def test_the_search_for_loops_has_a_limit_and_can_be_stopped(envs: MarioVectorEnv, trail: Trail) -> None:
    start, waiting = envs.snapshot(0), [NOOP, LEFT] * 10 + trail.actions()
    assert without_loops(envs, start, waiting, cells_of, tries=1) == waiting
    assert without_loops(envs, start, waiting, cells_of, ENOUGH, goes_on=lambda: False) == waiting


def test_loops_end_at_the_next_or_the_last_visit_to_their_place_the_longest_first() -> None:
    found = [(loop.first, loop.end) for loop in _loops([5, 5, 6, 7, 5, 5, 6, 8])]
    lengths = [end - first for first, end in found]
    assert lengths == sorted(lengths, reverse=True)
    assert set(found) == {(0, 4), (0, 5), (1, 4), (1, 5), (4, 5), (2, 6)}
    assert _loops([1, 2, 3]) == []
