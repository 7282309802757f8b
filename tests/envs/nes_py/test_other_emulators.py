"""Any Gymnasium environment with frames and RAM can be played: x from RAM, stages it can't start, failures counted."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.envs.nes_py.toy_emulators import ToyEmulator
from warpzone.engine import FIELDS
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig, BackendError
from warpzone.envs.nes_py.emulators import GymnasiumEmulator
from warpzone.envs.nes_py.episode import EpisodeEnv, EpisodeSettings, PositionReader

X = FIELDS.index("x_pos")


def x_of(result: tuple[Any, ...]) -> int:
    """The x position in what reset or step returned."""
    return int(result[-1]["telemetry"][X])


class ForeignEnv(gym.Env[Any, Any]):
    """A game with buttons as actions and frames as observations; RAM if `has_ram`, no x position in its info."""

    observation_space = gym.spaces.Box(0, 255, (240, 256, 3), np.uint8)
    action_space = gym.spaces.Discrete(256)

    def __init__(self, has_ram: bool = True) -> None:
        self.toy = ToyEmulator()
        self.has_ram = has_ram

    @property
    def ram(self) -> Any:
        return self.toy.ram if self.has_ram else None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.toy.begin("1-1")
        return self.toy.screen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.toy.play(int(action))
        return self.toy.screen, 0.0, False, False, {}


def episodes_on(env: ForeignEnv, stage: str | None = "1-1", **backend: Any) -> EpisodeEnv:
    view = ViewConfig(frame_stack=1, size=(8, 8))
    settings = EpisodeSettings(view, ["1-1"], BackendConfig(**backend))
    return EpisodeEnv(settings, GymnasiumEmulator(env, stage=stage))


def test_x_comes_from_ram_when_the_backend_gives_none() -> None:
    episodes = episodes_on(ForeignEnv())
    assert x_of(episodes.reset(seed=0)) == 40
    assert x_of(episodes.step(1)) == 44


def test_the_addresses_of_x_can_be_chosen() -> None:
    reader = PositionReader(BackendConfig(ram_x_high_addr="0x10", ram_x_low_addr="17"))
    ram = np.zeros(0x800, np.uint8)
    ram[0x10], ram[17] = 2, 5
    assert reader({}, ram) == 2 * 256 + 5


def test_what_the_backend_says_comes_first() -> None:
    reader = PositionReader(BackendConfig())
    assert reader({"x_pos": 7}, np.zeros(0x800, np.uint8)) == 7
    assert PositionReader(BackendConfig(enable_ram_x_parse=False))({}, np.ones(0x800, np.uint8)) == 0


def test_failures_are_counted_and_past_the_limit_the_fallback_is_off_with_one_warning() -> None:
    reader = PositionReader(BackendConfig(ram_x_failure_limit=3))
    good = np.zeros(0x800, np.uint8)
    good[0x86] = 9
    assert reader({}, good) == 9
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [reader({}, None), reader({}, np.zeros(4, np.uint8)), reader({}, None)] == [9, 9, 9]
        assert reader({}, good) == 9
    assert reader.failures == 3
    assert not reader.parses_ram
    assert [str(w.message)[:51] for w in caught] == ["[env][warn] x position could not be read from RAM 3"]


def test_a_backend_without_ram_still_plays_and_its_failures_reach_the_info() -> None:
    episodes = episodes_on(ForeignEnv(has_ram=False), ram_x_failure_limit=4)
    episodes.reset(seed=0)
    with pytest.warns(RuntimeWarning, match="switched off"):
        result = episodes.step(1)
    assert result[-1]["parse_fail"] == 4
    assert x_of(result) == 0
    assert result[0][0, 0, 0] == 44


def test_a_stage_the_backend_cannot_start_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIO_FC_STRICT_STAGE", raising=False)
    monkeypatch.delenv("MARIO_SUPPRESS_FC_STAGE_WARN", raising=False)
    episodes = episodes_on(ForeignEnv(), stage="2-1")
    with pytest.warns(RuntimeWarning, match="can't start stage 1-1: it plays 2-1"):
        episodes.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        episodes.reset(seed=0)


def test_the_stage_warning_can_be_silenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_SUPPRESS_FC_STAGE_WARN", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x_of(episodes_on(ForeignEnv(), stage=None).reset(seed=0)) == 40


def test_the_stage_warning_can_be_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_FC_STRICT_STAGE", "1")
    with pytest.raises(BackendError, match="can't start stage 1-1"):
        episodes_on(ForeignEnv(), stage=None).reset(seed=0)
