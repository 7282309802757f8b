"""The example of docs/backends.md: nes-py's raw emulator, which knows nothing of the game, played through RAM."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.envs.telemetry_reference import digits
from warpzone.engine import FIELDS
from warpzone.engine.rom import rom_path
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.emulators import GymnasiumEmulator
from warpzone.envs.nes_py.episode import EpisodeEnv, EpisodeSettings
from warpzone.envs.nes_py.patches import patch_nes_py, quiet_gym

pytest.importorskip("nes_py")
START = 8


class RawNes(gym.Env[Any, Any]):
    """nes-py's NESEnv as a Gymnasium environment: frames as observations, buttons as actions, RAM as an attribute."""

    observation_space = gym.spaces.Box(0, 255, (240, 256, 3), np.uint8)
    action_space = gym.spaces.Discrete(256)

    def __init__(self) -> None:
        patch_nes_py()
        with quiet_gym():
            from nes_py import NESEnv
        self._nes = NESEnv(str(rom_path()))
        self.ram = self._nes.ram

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._nes.reset()
        # Through the title screen: press and release start until there is a clock, then wait for its first tick.
        while digits(self.ram, 0x07F8, 3) == 0:
            self._nes.step(START)
            self._nes.step(0)
        first = digits(self.ram, 0x07F8, 3)
        while digits(self.ram, 0x07F8, 3) >= first:
            self._nes.step(0)
        return self._nes.screen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        screen, *_ = self._nes.step(int(action))
        return screen, 0.0, False, False, {}

    def close(self) -> None:
        self._nes.close()


def test_the_raw_emulator_gives_positions_and_progress_from_ram() -> None:
    emulator = GymnasiumEmulator(RawNes(), stage="1-1")
    view = ViewConfig(frame_stack=1, size=(8, 8))
    episodes = EpisodeEnv(EpisodeSettings(view, ["1-1"], BackendConfig()), emulator)
    first = dict(zip(FIELDS, episodes.reset(seed=0)[-1]["telemetry"].tolist(), strict=True))
    assert (first["world"], first["stage"], first["x_pos"]) == (1, 1, 40)
    for _ in range(10):
        last = dict(zip(FIELDS, episodes.step(1)[-1]["telemetry"].tolist(), strict=True))
    assert last["x_pos"] > 50
    assert last["progress"] == last["x_pos"] - 40
    assert episodes.x_pos.failures == 0
    emulator.close()
