"""Version 9 against what the running package gave: `bench/compat_nine.py` has recorded it on Python 3.13."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from warpzone.compat.v9.gym_super_mario_bros import SuperMarioBrosEnv

_SPEC = importlib.util.spec_from_file_location(
    "compat_nine", Path(__file__).parents[2] / "bench" / "compat_nine.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
bench = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench)

RECORDED = json.loads((Path(__file__).parent / "nine.json").read_text())["tapes"]


@pytest.mark.parametrize("target", bench.TARGETS, ids=str)
def test_a_tape(target: tuple[int, int] | None) -> None:
    assert bench.digests(SuperMarioBrosEnv, target) == RECORDED[str(target)]


def test_states_are_dumped_and_loaded() -> None:
    env = SuperMarioBrosEnv(target=(1, 1))
    env.reset()
    for _ in range(30):
        env.step(131)
    state = env.dump_state()
    first = [env.step(131)[4]["x_pos"] for _ in range(10)]
    env.load_state(state)
    assert [env.step(131)[4]["x_pos"] for _ in range(10)] == first
    damaged = bytearray(state)
    damaged[40] ^= 0xFF
    other = SuperMarioBrosEnv(rom_mode="pixel", target=(1, 1)).dump_state()
    for bad in (b"", state[:-1], bytes(damaged), other):
        with pytest.raises(ValueError, match="not a saved state"):
            env.load_state(bad)
    env.close()
    with pytest.raises(ValueError, match="already been closed"):
        env.dump_state()


def test_the_generator_is_gymnasiums() -> None:
    env = SuperMarioBrosEnv(target=(1, 1))
    env.reset(seed=5)
    drawn = env.np_random.integers(1000)
    with pytest.warns(DeprecationWarning, match="reset"):
        assert env.seed(5) == [5]
    assert env.np_random.integers(1000) == drawn
