"""Environments that play generated levels, 128 at a time, of a given number or without end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.engine.rom import rom as find_rom
from warpzone.envs.interface import Info, Result
from warpzone.envs.level_replay import LevelReplay
from warpzone.envs.pool_envs import StepMemory
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import CheckpointError, ConfigError
from warpzone.levels.generator import generate
from warpzone.levels.level import Level

SLOTS = 128
"""Levels that are there at a time; each episode plays one of them."""
REFRESH_DECISIONS, REFRESH_STEPS = 1024, 4
"""Decisions, and steps of all environments, after which the oldest level makes room for the next seed, where there are
more levels than slots. A level takes milliseconds to make: thousands of environments would wait for it every step."""
TRAINING_SEED, HELD_OUT_SEED = 0, 1 << 40
"""The first seeds for training and for tests; no run gets from one to the other."""
HELD_OUT = 64
"""Levels that an evaluation of "levels@0.3" plays."""
ENDLESS = "endless"
MOST_NAMED = 4096


@dataclass(frozen=True)
class LevelSource:
    """Which levels a run plays."""

    count: int
    """How many there are; 0: without end."""
    difficulty: float
    first: int = TRAINING_SEED

    @property
    def slots(self) -> int:
        return min(self.count or SLOTS, SLOTS)

    @property
    def rotates(self) -> bool:
        return self.count != self.slots

    def seed(self, number: int) -> int:
        """The seed of the level with this number."""
        return self.first + (number % self.count if self.count else number)


def named_levels(name: str, rom: bytes | None = None) -> list[Level] | None:
    """The levels of a name: "levels-7@0.3", "levels-0-199@0.3", or "levels@0.3" for those that no run trains on."""
    match = re.fullmatch(r"levels(?:-(\d{1,18})(?:-(\d{1,18}))?)?@(\d+(?:\.\d+)?)", name)
    if match is None:
        return None
    first = int(match[1]) if match[1] else HELD_OUT_SEED
    last = int(match[2]) if match[2] else first if match[1] else first + HELD_OUT - 1
    if not first <= last < first + MOST_NAMED:
        raise ConfigError(
            f"A range of seeds such as 0-199 holds 1 to {MOST_NAMED} levels, not {first}-{last}."
        )
    image = find_rom() if rom is None else rom
    return [generate(seed, float(match[3]), rom=image) for seed in range(first, last + 1)]


def parse_count(levels: str) -> int:
    """The number of levels in "256" or "endless" (0)."""
    if levels == ENDLESS:
        return 0
    if not levels.isdecimal() or not 1 <= int(levels) <= 1_000_000_000:
        raise ConfigError(f"--levels is a number from 1 to 1,000,000,000 or {ENDLESS!r}, not {levels!r}.")
    return int(levels)


class LevelPoolEnv(MarioVectorEnv):
    """Environments whose last stage is all generated levels together: `info["stage_index"]` counts them as one."""

    def __init__(
        self,
        num_envs: int,
        source: LevelSource,
        stages: Sequence[str] = (),
        *,
        replay: bool = False,
        **options: Any,
    ) -> None:
        rom = options.pop("rom", None)
        self._rom = rom if isinstance(rom, bytes) else find_rom(rom)
        self._source = source
        self._numbers = list(range(source.slots))
        """Which level is in each slot."""
        self._next, self._decisions = source.slots, 0
        self._replay = LevelReplay(source.slots) if replay else None
        self._weights = [1.0] * len(stages) + [float(source.slots)]
        levels = [self._level(number) for number in self._numbers]
        super().__init__(num_envs, stages=list(stages) or None, levels=levels, rom=self._rom, **options)
        self._plain = len(stages)
        self._group = np.minimum(np.arange(self._plain + source.slots), self._plain).astype(np.int32)

    def _level(self, number: int) -> Level:
        return generate(self._source.seed(number), self._source.difficulty, rom=self._rom)

    def level_seeds(self) -> list[int]:
        """The seeds of the levels that episodes begin with now."""
        return [self._source.seed(number) for number in self._numbers]

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each stage, and last any of the levels, is sampled."""
        if len(weights) == self._plain + 1:
            self._weights = list(weights)
            slots = self._source.slots
            shares = self._replay.shares if self._replay else np.full(slots, 1.0 / slots)
            weights = [*weights[:-1], *(weights[-1] * shares).tolist()]
        super().set_stage_weights(weights)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        observations, info = super().reset(seed=seed, options=options)
        self._count_as_one(info)
        return observations, info

    def _result(self, memory: StepMemory) -> Result:
        result = super()._result(memory)
        info = result[4]
        if self._replay is not None:
            self._count_episodes(self._replay, result[2] | result[3], info.get("final_info", info))
        self._count_as_one(info)
        if "final_info" in info:
            self._count_as_one(info["final_info"])
        every = max(REFRESH_DECISIONS, REFRESH_STEPS * self.num_envs)
        before = self._decisions // every
        self._decisions += self.num_envs
        turns = range(before, self._decisions // every)
        if self._source.rotates:
            for turn in turns:
                self._next_level(turn % self._source.slots)
        if self._replay is not None and turns:
            self._replay.weigh()
            self.set_stage_weights(self._weights)
        return result

    def _count_episodes(self, replay: LevelReplay, over: NDArray[np.bool_], info: Info) -> None:
        slots = info["stage_index"] - self._plain
        levels = over & (slots >= 0)
        replay.count(slots[levels], info["flag_get"][levels])

    def _next_level(self, oldest: int) -> None:
        """The next seed takes the place of the oldest level, or of the one that teaches least."""
        slot = oldest
        if self._replay is not None:
            slot = self._replay.least(oldest)
            self._replay.forget(slot)
        self._numbers[slot] = self._next
        self._next += 1
        self.set_levels({self._plain + slot: self._level(self._numbers[slot])})

    def _count_as_one(self, info: Info) -> None:
        info["stage_index"] = self._group[info["stage_index"]]

    def state_dict(self) -> dict[str, Any]:
        """Also which levels are being played."""
        levels = {"numbers": list(self._numbers), "next": self._next, "decisions": self._decisions}
        replay = {} if self._replay is None else {"level_replay": self._replay.state_dict()}
        return {**super().state_dict(), "levels": levels, **replay}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to `state_dict`, with the levels that there were."""
        saved = state.get("levels")
        if saved is None or len(saved["numbers"]) != len(self._numbers):
            raise CheckpointError("the saved environments have other levels")
        changed = [i for i, (a, b) in enumerate(zip(saved["numbers"], self._numbers, strict=True)) if a != b]
        self.set_levels({self._plain + i: self._level(saved["numbers"][i]) for i in changed})
        self._numbers, self._next, self._decisions = list(saved["numbers"]), saved["next"], saved["decisions"]
        if self._replay is not None and "level_replay" in state:
            self._replay.load_state_dict(state["level_replay"])
        super().load_state_dict(state)
