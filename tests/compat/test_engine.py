"""The engine's shortcuts against the slow ways they stand for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

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


@pytest.mark.parametrize("shortcut", ["skip_idle_loops", "translate"])
@pytest.mark.parametrize("lost_levels", [False, True])
def test_shortcuts_change_nothing(shortcut: str, lost_levels: bool) -> None:
    fast, slow = (NESEnv(rom_path(lost_levels, "vanilla")) for _ in range(2))
    assert slow._env is not None
    setattr(slow._env, shortcut, False)
    rng = np.random.default_rng(1)
    for step in range(400):
        action = 8 * (step % 2) if step < 100 else int(rng.integers(256)) & ~12
        fast._frame_advance(action), slow._frame_advance(action)
        assert np.array_equal(fast.ram, slow.ram), step
        assert np.array_equal(fast.screen, slow.screen), step


@pytest.mark.parametrize("translate", [True, False])
def test_waiting_for_the_status_line_is_passed_over(translate: bool) -> None:
    env = SuperMarioBrosEnv(target=(1, 1))
    env.reset()
    emulator = env._emulator
    emulator.translate = translate
    before = emulator.skipped_cycles
    for _ in range(20):
        env.step(128)
    # Until sprite 0 is met, some lines down the screen.
    assert (emulator.skipped_cycles - before) / 20 > 1000


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
