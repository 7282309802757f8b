"""One environment on another emulator: the engine's episodes (native/pool) in Python, number for number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.envs.actions import action_buttons
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.emulators import Emulator
from warpzone.envs.nes_py.position import PositionReader
from warpzone.envs.nes_py.preprocessing import Preprocessor
from warpzone.envs.seeding import MASK
from warpzone.envs.stages import parse_stage
from warpzone.envs.telemetry import End, Journey, counts_as_ground, decode, episode_end, flag_get, room

Info = dict[str, Any]


class Random:
    """The engine's random stream (SplitMix64), so that the same seed samples the same stages and idle frames."""

    def __init__(self, seed: int = 0) -> None:
        self.state = seed & MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31

    def uniform(self) -> float:
        return (self.next() >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        return (self.next() >> 32) * n >> 32


@dataclass(frozen=True)
class EpisodeSettings:
    """What an environment plays and how it is observed; picklable, sent to workers."""

    view: ViewConfig
    stages: Sequence[str]
    backend: BackendConfig


def spaces(view: ViewConfig) -> tuple[gym.spaces.Space[NDArray[np.uint8]], gym.spaces.Space[np.int64]]:
    """The observation and the action space of one environment."""
    seen: Any = gym.spaces.Box(0, 255, view.shape, np.uint8)
    return seen, gym.spaces.Discrete(view.num_actions)


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
        self.random = Random()
        self.x_pos = PositionReader(settings.backend)
        self.observation_space, self.action_space = spaces(self.view)
        self._weights = np.ones(len(self.stages))
        self._preprocess = Preprocessor(self.view)
        self._buttons = action_buttons(self.view.action_type)
        self._stack: list[NDArray[np.uint8]] = []
        self._stage_index = 0
        self._stage = (1, 1)
        self._end = End.NONE
        self._flag = False
        self._held = 0
        self._steps = 0
        self._journey = Journey()

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
            self.random = Random(seed)
        self._begin()
        return np.concatenate(self._stack), self._info()

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """One decision."""
        self._decide(self._buttons[int(action)])
        truncated = self._end in (End.STALLED, End.STEP_LIMIT)
        terminated = self._end is not End.NONE and not truncated
        return np.concatenate(self._stack), 0.0, terminated, truncated, self._info()

    def close(self) -> None:
        self.emulator.close()

    def _begin(self) -> None:
        # Sampled even when there is one stage, so that the stream does not depend on their number.
        u = self.random.uniform()
        cumulative = np.cumsum(self._weights / self._weights.sum())
        self._stage_index = int(np.searchsorted(cumulative[:-1], u, side="right"))
        name = self.stages[self._stage_index]
        self._stage = parse_stage(name)
        self.emulator.begin(name)
        self._steps = self._held = 0
        self._end, self._flag = End.NONE, False
        idle = self.random.below(self.view.noop_max + 1) if self.view.noop_max else 0
        for _ in range(idle):
            self.emulator.play(0)
        self._journey = Journey()
        self._look()
        self._stack = [self._preprocess(self.emulator.screen)] * self.view.frame_stack

    def _decide(self, buttons: int) -> None:
        before: NDArray[np.uint8] | None = None
        for frame in range(self.view.frame_skip):
            # The next frame is drawn into the same memory.
            before = self.emulator.screen.copy() if self.view.max_pool and frame else None
            sticks = self.view.sticky > 0 and self.random.uniform() < self.view.sticky
            self._held = self._held if sticks else buttons
            self.emulator.play(self._held)
            ram = self.emulator.ram
            if ram is not None:
                self._end = episode_end(ram, self._stage)
                self._flag = flag_get(ram)
            self._look()
            if self._end is not End.NONE:
                break
            self.emulator.skip_scenes()
        self._steps += 1
        self._journey.since_progress += 1
        if self._end is End.NONE:
            if 0 < self.view.step_limit <= self._steps:
                self._end = End.STEP_LIMIT
            if 0 < self.view.stall_limit <= self._journey.since_progress:
                self._end = End.STALLED
        self._stack = [*self._stack[1:], self._preprocess(self.emulator.screen, before)]

    def _look(self) -> None:
        ram = self.emulator.ram
        here = room(ram) if ram is not None else (0, 0, 0, 0)
        begun = bool(self._journey.furthest)
        counts = ram is None or not begun or counts_as_ground(ram, self.view.ground == "stood")
        x = self.x_pos(self.emulator.info, ram)
        self._journey.look(here, x, counts)
        if ram is not None:
            self._journey.look_for_wrong_turn(ram, x)

    def _info(self) -> Info:
        ram, journey = self.emulator.ram, self._journey
        fields = decode(ram) if ram is not None else {}
        fields |= {
            "x_pos": self.x_pos(self.emulator.info, ram),
            "flag_get": int(self._flag),
            "progress": journey.progress,
            "x_max": journey.x_max,
            "end": int(self._end),
            "steps": self._steps,
            "frames": self.emulator.frames,
            "stage_index": self._stage_index,
            "rooms_seen": journey.rooms,
            "wrong_turns": journey.wrong_turns,
        }
        row = np.array([fields.get(name, 0) for name in FIELDS], np.int32)
        return {"telemetry": row, "parse_fail": self.x_pos.failures}
