"""Step by step against gym-super-mario-bros 7 on nes-py. `bench/compat_equivalence.py` does the same at length."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpzone.envs.nes_py.patches import installed, major

pytestmark = pytest.mark.skipif(
    major(installed("gym-super-mario-bros") or "0") != 7,
    reason="needs gym-super-mario-bros 7 to compare with",
)

_SPEC = importlib.util.spec_from_file_location(
    "compat_equivalence", Path(__file__).parents[2] / "bench" / "compat_equivalence.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
bench = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench)

WHAT = ("info", "reward", "done", "ram", "pixels")


def pair(target: tuple[int, int] | None, **arguments: Any) -> tuple[Any, Any]:
    return bench.original(target, **arguments), bench.ours(target, **arguments)


def check(theirs: Any, mine: Any, actions: Any) -> dict[str, Any]:
    found: dict[str, Any] = bench.differences(theirs, mine, actions)
    assert {what: found[what] for what in WHAT} == dict.fromkeys(WHAT, 0), found["first"]
    return found


def same(theirs: Any, mine: Any) -> bool:
    return bool(np.array_equal(theirs.ram, mine.ram) and np.array_equal(theirs.screen, mine.screen))


@pytest.mark.parametrize(("target", "style"), [((1, 1), "right"), ((2, 2), "simple"), ((8, 4), "bytes")])
def test_a_stage(target: tuple[int, int], style: str) -> None:
    check(*pair(target), bench.tape(style, 7, 120))


def test_a_variant_of_the_rom() -> None:
    check(*pair((1, 2), rom_mode="rectangle"), bench.tape("right", 3, 40))


def test_the_lost_levels() -> None:
    check(*pair(None, lost_levels=True), bench.tape("right", 3, 40))


def force(envs: tuple[Any, Any], **ram: int) -> None:
    for env in envs:
        for address, value in ram.items():
            env.ram[int(address[1:], 16)] = value


def both(envs: tuple[Any, Any], action: int) -> tuple[bool, dict[str, Any]]:
    (_, *theirs), (_, *mine) = (env.step(action) for env in envs)
    assert theirs == mine
    assert same(*envs)
    return mine[1], mine[2]


def test_deaths_to_the_end_of_the_game() -> None:
    envs = pair(None)
    lives = []
    for env in envs:
        env.reset()
    for _ in range(3):
        both(envs, 128)
        force(envs, x00B5=2)
        done, info = both(envs, 0)
        lives.append(info["life"])
        for _ in range(3):
            if not done:
                done, info = both(envs, 128)
    assert lives == [2, 1, 0]
    assert done
    for env in envs:
        with pytest.raises(ValueError, match="cannot step in a done environment"):
            env.step(0)
        env.reset()
    assert same(*envs)


def test_flags_and_the_next_stage() -> None:
    envs = pair((1, 1))
    for env in envs:
        env.reset()
    force(envs, x0770=2)
    done, info = both(envs, 0)
    assert done
    assert info["flag_get"]
    whole = pair(None)
    for env in whole:
        env.reset()
    force(whole, x0770=2)  # the end of the world: its scene is skipped
    done, info = both(whole, 0)
    assert info["flag_get"]
    assert not done
    both(whole, 128)


def test_backup_and_restore() -> None:
    envs = pair((1, 1))
    for env in envs:
        env.reset()
    for action in bench.tape("right", 1, 20):
        both(envs, action)
    for env in envs:
        env._backup()
    for action in bench.tape("simple", 2, 20):
        both(envs, action)
    for env in envs:
        env._restore()
    assert same(*envs)
    for action in bench.tape("right", 3, 10):
        both(envs, action)
    for env in envs:
        env.reset()
    assert same(*envs)


def test_what_else_they_say() -> None:
    theirs, mine = pair((1, 1))
    assert mine.get_keys_to_action() == theirs.get_keys_to_action()
    assert mine.get_action_meanings() == theirs.get_action_meanings()
    assert mine.metadata == theirs.metadata
    assert mine.reward_range == theirs.reward_range
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    assert mine.screen.strides == theirs.screen.strides
    assert mine.screen.flags.writeable == theirs.screen.flags.writeable
    assert mine.seed(3) == theirs.seed(3) == [3]
    for env in (theirs, mine):
        assert env.render(mode="rgb_array") is env.screen
        with pytest.raises(NotImplementedError, match="valid render modes"):
            env.render(mode="ansi")
        env.close()
        with pytest.raises(ValueError, match="already been closed"):
            env.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"rom_mode": "none"},
        {"lost_levels": "yes"},
        {"target": [1, 1]},
        {"target": (9, 1)},
        {"target": (1, 5)},
        {"target": (1.0, 1)},
        {"target": (1, "1")},
        {"target": (5, 1), "lost_levels": True},
        {"rom_mode": "pixel", "lost_levels": True},
    ],
)
def test_the_same_errors(arguments: dict[str, Any]) -> None:
    errors = []
    for make in (bench.original, bench.ours):
        with pytest.raises((TypeError, ValueError)) as raised:
            make(**{"target": None, **arguments})
        errors.append((raised.type, str(raised.value)))
    assert errors[0] == errors[1]
