"""What version 7 raises, case by case, as recorded on gym-super-mario-bros 7.4 with gym 0.26 and NumPy 1.26."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warpzone.compat.gym7 import gym
from warpzone.compat.gym_super_mario_bros import SuperMarioBrosEnv, SuperMarioBrosRandomStagesEnv, make
from warpzone.compat.gym_super_mario_bros._roms import rom_path
from warpzone.compat.gym_super_mario_bros.actions import RIGHT_ONLY
from warpzone.compat.nes_py import NESEnv
from warpzone.compat.nes_py.wrappers import JoypadSpace

pytestmark = pytest.mark.skipif(
    not hasattr(gym.error, "NameNotFound"), reason="recorded on gym 0.26; an older one has other errors"
)


def begun(**options: Any) -> Any:
    env = SuperMarioBrosEnv(**{"target": (1, 1), **options})
    env.reset()
    return env


def over() -> Any:
    env = begun()
    env.done = True
    return env


def closed() -> Any:
    env = begun()
    env.close()
    return env


def joypad() -> Any:
    return JoypadSpace(begun(), RIGHT_ONLY)


STAGE, FIVE = "SuperMarioBros-1-1-v0", {"apply_api_compatibility": True}
CASES: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "unknown kind of argument": (TypeError, lambda: make(STAGE, nothing=1)),
    "stages of one stage": (TypeError, lambda: make(STAGE, stages=["1-1"])),
    "step before reset": (gym.error.ResetNeeded, lambda: make(STAGE, **FIVE).step(0)),
    "render before reset": (
        gym.error.ResetNeeded,
        lambda: make(STAGE, **FIVE, render_mode="rgb_array").render(),
    ),
    "step of a ROM before reset": (ValueError, lambda: NESEnv(rom_path(False, "vanilla")).step(0)),
    "step after the end": (ValueError, lambda: over().step(0)),
    "action of text": (ValueError, lambda: begun().step("a")),
    "no action": (TypeError, lambda: begun().step(None)),
    "two actions": (ValueError, lambda: begun().step([1, 2])),
    "action beyond the list": (KeyError, lambda: joypad().step(5)),
    "negative action": (KeyError, lambda: joypad().step(-1)),
    "action in an array": (TypeError, lambda: joypad().step(np.array([1]))),
    "unknown button": (KeyError, lambda: JoypadSpace(begun(), [["jump"]])),
    "no actions": (AssertionError, lambda: JoypadSpace(begun(), [])),
    "closed twice": (ValueError, lambda: closed().close()),
    "render mode": (NotImplementedError, lambda: begun().render(mode="ansi")),
    "ROM mode": (ValueError, lambda: begun(rom_mode="x")),
    "lost levels in rectangles": (ValueError, lambda: begun(rom_mode="rectangle", lost_levels=True)),
    "lost levels of 1": (TypeError, lambda: begun(lost_levels=1)),
    "target in a list": (TypeError, lambda: begun(target=[1, 1])),
    "world 9": (ValueError, lambda: begun(target=(9, 1))),
    "stage 5": (ValueError, lambda: begun(target=(1, 5))),
    "world 1.0": (TypeError, lambda: begun(target=(1.0, 1))),
    "three parts": (ValueError, lambda: begun(target=(1, 1, 1))),
    "lost world 5": (ValueError, lambda: begun(lost_levels=True, target=(5, 1))),
    "stage 9-9 at random": (IndexError, lambda: SuperMarioBrosRandomStagesEnv(stages=["9-9"]).reset()),
    "no stage at random": (ValueError, lambda: SuperMarioBrosRandomStagesEnv(stages=["nope"]).reset()),
    "seed of text": (TypeError, lambda: begun().seed("a")),
    "negative seed": (ValueError, lambda: begun().seed(-1)),
}
UNKNOWN = {
    "SuperMarioBros-9-1-v0": "NameNotFound",
    "SuperMarioBros-1-1-v9": "VersionNotFound",
    "SuperMarioBro-v0": "NameNotFound",
    "Super Mario": "Error",
}


@pytest.mark.parametrize("case", CASES, ids=[case.replace(" ", "_") for case in CASES])
def test_an_error(case: str) -> None:
    kind, cause = CASES[case]
    with pytest.raises(kind) as raised:
        cause()
    assert raised.type is kind


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_id(name: str) -> None:
    with pytest.raises(gym.error.Error) as raised:
        make(name)
    assert raised.type.__name__ == UNKNOWN[name]
