"""The engine's shortcuts against the slow ways they stand for."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from warpzone.compat.gym_super_mario_bros import SuperMarioBrosEnv
from warpzone.compat.nes_py import NESEnv
from warpzone.compat.rom import rom_path


class Ruled(SuperMarioBrosEnv):
    """Overrides a rule, and changes nothing by it: stepped by the rules in Python."""

    def _get_reward(self) -> float:
        return super()._get_reward()


def test_rules_in_python_and_in_the_engine() -> None:
    fast, slow = SuperMarioBrosEnv(target=(1, 1)), Ruled(target=(1, 1))
    fast.reset(), slow.reset()
    assert (fast._by_engine, slow._by_engine) == (True, False)
    rng = np.random.default_rng(0)
    for step in range(600):
        action = int(rng.choice([128, 129, 131, 130, 1, 64]))
        (frame, *rest), (slow_frame, *slow_rest) = fast.step(action), slow.step(action)
        assert rest == slow_rest, step
        assert np.array_equal(frame, slow_frame), step
        assert np.array_equal(fast.ram, slow.ram), step
        if rest[1]:
            fast.reset(), slow.reset()


def test_a_rule_replaced_on_the_object_counts_from_the_next_reset() -> None:
    env = SuperMarioBrosEnv(target=(1, 1))
    env._get_reward = lambda: 7
    env.reset()
    assert env.step(0)[1] == 7


def test_idle_loops_are_skipped_exactly() -> None:
    skips, waits = (NESEnv(rom_path(False, "vanilla")) for _ in range(2))
    assert waits._env is not None
    waits._env.skip_idle_loops = False
    rng = np.random.default_rng(1)
    for step in range(300):
        action = 8 * (step % 2) if step < 100 else int(rng.integers(256)) & ~12
        skips._frame_advance(action), waits._frame_advance(action)
        assert np.array_equal(skips.ram, waits.ram), step
        assert np.array_equal(skips.screen, waits.screen), step


def test_copies_play_on_alike() -> None:
    env = SuperMarioBrosEnv(target=(1, 1))
    env.reset()
    for _ in range(50):
        env.step(130)
    others = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    for step in range(60):
        mine = env.step(131)
        for other in others:
            theirs = other.step(131)
            assert np.array_equal(mine[0], theirs[0]), step
            assert mine[1:] == theirs[1:]
    first = env.reset().copy()
    for other in others:
        assert np.array_equal(other.reset(), first)
        assert other.screen is not env.screen
