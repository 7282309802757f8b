"""One environment on a foreign console: the engine's `Slot` (native/pool/slot.cpp) in Python, number for number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.envs.actions import action_buttons
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.console import Console
from warpzone.envs.nes_py.pictures import Pictures
from warpzone.envs.nes_py.position import PositionReader
from warpzone.envs.nes_py.telemetry import (
    End,
    Journey,
    counts_as_ground,
    decode,
    episode_end,
    flag_get,
    room,
)
from warpzone.envs.stages import parse_stage

_MASK = 0xFFFFFFFFFFFFFFFF


class Random:
    """The engine's random stream (SplitMix64), so that the same seed draws the same stages and idle frames."""

    def __init__(self, seed: int = 0) -> None:
        self.state = seed & _MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
        return z ^ z >> 31

    def uniform(self) -> float:
        return (self.next() >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        return (self.next() >> 32) * n >> 32


@dataclass(frozen=True)
class EpisodeSettings:
    """What an environment plays and how it shows it; plain data, sent to workers."""

    view: ViewConfig
    stages: Sequence[str]
    backend: BackendConfig


@dataclass
class Outcome:
    """One decision's result, after SAME_STEP autoreset."""

    observation: NDArray[np.uint8]
    telemetry: NDArray[np.int32]
    terminated: bool = False
    truncated: bool = False
    final_observation: NDArray[np.uint8] | None = None
    final_telemetry: NDArray[np.int32] | None = None
    parse_failures: int = 0


class Episodes:
    """Episode after episode on one console."""

    def __init__(self, console: Console, settings: EpisodeSettings) -> None:
        self.console = console
        self.view = settings.view
        self.stages = list(settings.stages)
        self.random = Random()
        self.x_pos = PositionReader(settings.backend)
        self._weights = np.ones(len(self.stages))
        self._pictures = Pictures(self.view)
        self._buttons = action_buttons(self.view.action_type)
        self._stack: list[NDArray[np.uint8]] = []
        self._stage_index = 0
        self._stage = (1, 1)
        self._end = End.NONE
        self._flag = False
        self._held = 0
        self._steps = 0
        self._journey = Journey()

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each stage is drawn from now on."""
        self._weights = np.array(weights, np.float64)

    def reset(self, seed: int | None = None) -> Outcome:
        """Begin an episode."""
        if seed is not None:
            self.random = Random(seed)
        self._begin()
        return Outcome(self._observe(), self._report(), parse_failures=self.x_pos.failures)

    def step(self, action: int) -> Outcome:
        """One decision; an episode that ends is followed by the next at once."""
        self._decide(self._buttons[action])
        if self._end is End.NONE:
            return Outcome(self._observe(), self._report(), parse_failures=self.x_pos.failures)
        final, told = self._observe(), self._report()
        truncated = self._end in (End.STALLED, End.STEP_LIMIT)
        self._begin()
        return Outcome(
            self._observe(), self._report(), not truncated, truncated, final, told, self.x_pos.failures
        )

    def _begin(self) -> None:
        # Drawn even when there is one stage, so that the stream does not depend on their number.
        u = self.random.uniform()
        cumulative = np.cumsum(self._weights / self._weights.sum())
        self._stage_index = int(np.searchsorted(cumulative[:-1], u, side="right"))
        name = self.stages[self._stage_index]
        self._stage = parse_stage(name)
        self.console.begin(name)
        self._steps = self._held = 0
        self._end, self._flag = End.NONE, False
        idle = self.random.below(self.view.noop_max + 1) if self.view.noop_max else 0
        for _ in range(idle):
            self.console.play(0)
        self._journey = Journey()
        self._look()
        self._stack = [self._pictures(self.console.screen)] * self.view.frame_stack

    def _decide(self, buttons: int) -> None:
        before: NDArray[np.uint8] | None = None
        for frame in range(self.view.frame_skip):
            # Drawn into the same memory as the next: a copy, if it is to be compared.
            before = self.console.screen.copy() if self.view.max_pool and frame else None
            sticks = self.view.sticky > 0 and self.random.uniform() < self.view.sticky
            self._held = self._held if sticks else buttons
            self.console.play(self._held)
            ram = self.console.ram
            if ram is not None:
                self._end = episode_end(ram, self._stage)
                self._flag = flag_get(ram)
            self._look()
            if self._end is not End.NONE:
                break
            self.console.skip_scenes()
        self._steps += 1
        self._journey.since_progress += 1
        if self._end is End.NONE:
            if 0 < self.view.step_limit <= self._steps:
                self._end = End.STEP_LIMIT
            if 0 < self.view.stall_limit <= self._journey.since_progress:
                self._end = End.STALLED
        self._stack = [*self._stack[1:], self._pictures(self.console.screen, before)]

    def _look(self) -> None:
        ram = self.console.ram
        here = room(ram) if ram is not None else (0, 0, 0, 0)
        begun = bool(self._journey.furthest)
        counts = ram is None or not begun or counts_as_ground(ram, self.view.ground == "stood")
        x = self.x_pos(self.console.info, ram)
        self._journey.look(here, x, counts)
        if ram is not None:
            self._journey.look_for_wrong_turn(ram, x)

    def _observe(self) -> NDArray[np.uint8]:
        return np.concatenate(self._stack)

    def _report(self) -> NDArray[np.int32]:
        ram, journey = self.console.ram, self._journey
        told = decode(ram) if ram is not None else {}
        told |= {
            "x_pos": self.x_pos(self.console.info, ram),
            "flag_get": int(self._flag),
            "progress": journey.progress,
            "x_max": journey.x_max,
            "end": int(self._end),
            "steps": self._steps,
            "frames": self.console.frames,
            "stage_index": self._stage_index,
            "rooms_seen": len(journey.furthest),
            "wrong_turns": journey.wrong_turns,
        }
        return np.array([told.get(name, 0) for name in FIELDS], np.int32)
