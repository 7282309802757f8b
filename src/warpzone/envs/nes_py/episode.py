"""One environment on another emulator: the engine's episodes, with its own rules read from the emulator's RAM."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.engine._native import ForeignEpisode
from warpzone.envs.actions import action_buttons
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import RAM_BYTES, BackendConfig
from warpzone.envs.nes_py.emulators import Emulator
from warpzone.envs.nes_py.preprocessing import Preprocessor, with_buttons
from warpzone.envs.stages import parse_stage

Info = dict[str, Any]


@dataclass(frozen=True)
class EpisodeSettings:
    """What an environment plays and how it is observed; picklable, sent to workers."""

    view: ViewConfig
    stages: Sequence[str]
    backend: BackendConfig


class EpisodeEnv(gym.Env[NDArray[np.uint8], np.int64]):
    """A Gymnasium environment whose info is the engine's telemetry as a row, `info["telemetry"]`, and no reward.

    Rewards are computed from the telemetry of all environments at once, by whoever owns them.
    """

    emulator: Emulator

    def __init__(self, settings: EpisodeSettings, emulator: Emulator | None = None) -> None:
        if emulator is not None:
            self.emulator = emulator
        self.view = settings.view
        self.stages = list(settings.stages)
        self.x_pos = PositionReader(settings.backend)
        self.observation_space = gym.spaces.Box(0, 255, self.view.shape, np.uint8)
        self.action_space = gym.spaces.Discrete(self.view.num_actions)
        self._weights = np.ones(len(self.stages))
        self._preprocess = Preprocessor(self.view)
        self._buttons = action_buttons(self.view.action_type)
        self._stack: list[NDArray[np.uint8]] = []
        self._episode = ForeignEpisode(self.view.ground == "stood")
        self._held = 0

    def screen(self) -> NDArray[np.uint8]:
        """A copy of the last frame, uint8 [240, 256, 3]."""
        return self.emulator.screen.copy()

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each stage is sampled from now on."""
        self._weights = np.array(weights, np.float64)

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin an episode; with a seed, of a new random stream."""
        if seed is not None:
            self._episode.seed(seed % 2**64)
        # Sampled even when there is one stage, so that the stream does not depend on their number.
        u = self._episode.uniform()
        cumulative = np.cumsum(self._weights / self._weights.sum())
        index = int(np.searchsorted(cumulative[:-1], u, side="right"))
        stage = parse_stage(self.stages[index])
        self.emulator.begin(self.stages[index])
        self._held, self._blank = 0, _blank_ram(stage)
        idle = self._episode.below(self.view.noop_max + 1) if self.view.noop_max else 0
        for _ in range(idle):
            self.emulator.play(0)
        self._episode.begin(self._ram(), self._x(), *stage, index)
        self._stack = [self._see()] * self.view.frame_stack
        return np.concatenate(self._stack), self._info()

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """One decision."""
        view, episode = self.view, self._episode
        before: NDArray[np.uint8] | None = None
        noise = view.frame_skip_noise
        count = view.frame_skip + (episode.below(2 * noise + 1) - noise if noise else 0)
        for frame in range(count):
            # The next frame is drawn into the same memory.
            before = self.emulator.screen.copy() if view.max_pool and frame else None
            sticks = view.sticky > 0 and episode.uniform() < view.sticky
            self._held = self._held if sticks else self._buttons[int(action)]
            self.emulator.play(self._held)
            if episode.look(self._ram(), self._x()):
                break
            self.emulator.skip_scenes()
        episode.count_decision(view.step_limit, view.stall_limit)
        self._stack = [*self._stack[1:], self._see(before)]
        return np.concatenate(self._stack), 0.0, episode.terminated, episode.truncated, self._info()

    def close(self) -> None:
        self.emulator.close()

    def _see(self, before: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        frame = self._preprocess(self.emulator.screen, before)
        return with_buttons(frame, self._held) if self.view.show_buttons else frame

    def _ram(self) -> NDArray[np.uint8]:
        """The emulator's RAM; where it shows none, one in which nothing happens."""
        ram = self.emulator.ram
        return self._blank if ram is None or len(ram) < RAM_BYTES else np.ascontiguousarray(ram, np.uint8)

    def _x(self) -> int:
        return self.x_pos(self.emulator.info, self.emulator.ram)

    def _info(self) -> Info:
        row = np.zeros(len(FIELDS), np.int32)
        self._episode.report(self._ram(), self._x(), self.emulator.frames, row)
        return {"telemetry": row, "parse_fail": self.x_pos.failures}


def _blank_ram(stage: tuple[int, int]) -> NDArray[np.uint8]:
    """RAM with the player in control in a stage, and nothing else."""
    ram = np.zeros(RAM_BYTES, np.uint8)
    ram[0x000E] = 8
    ram[0x075F], ram[0x075C] = max(stage[0] - 1, 0), max(stage[1] - 1, 0)
    return ram


class PositionReader:
    """Gives `x_pos`: what the backend reports, else two bytes of RAM, else the last known one.

    RAM that is missing, too short or not made of bytes is a failure. At the limit the fallback is switched off with
    one warning, and `failures` keeps the count.
    """

    def __init__(self, config: BackendConfig) -> None:
        self.parses_ram = config.enable_ram_x_parse
        self.failures = 0
        self._addresses = config.ram_x_addresses()
        self._limit = config.ram_x_failure_limit
        self._last = 0

    def __call__(self, info: Mapping[str, Any], ram: NDArray[np.uint8] | None) -> int:
        if "x_pos" in info:
            self._last = _signed(int(info["x_pos"]))
        elif self.parses_ram:
            try:
                if ram is None:
                    raise ValueError("the backend gives no RAM")
                self._last = _signed(
                    int.from_bytes([int(ram[address]) for address in self._addresses], "big")
                )
            except (IndexError, TypeError, ValueError) as error:
                self._fail(error)
        return self._last

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        if self.failures < self._limit:
            return
        self.parses_ram = False
        warnings.warn(
            f"[env][warn] x position could not be read from RAM {self.failures} times ({error}): the fallback is "
            "switched off and there will be no reward for distance; see --ram-x-high-addr and --ram-x-low-addr.",
            RuntimeWarning,
            stacklevel=3,
        )


def _signed(x: int) -> int:
    """Mazes move the player back by four pages, which can be left of page 0."""
    return x - 0x10000 if x >= 0x8000 else x
