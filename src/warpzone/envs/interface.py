"""What the vectors of both backends share: spaces, checks of arguments, and the info of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.envs.actions import action_names
from warpzone.envs.config import MAX_ENVS, ViewConfig
from warpzone.envs.rewards import RewardArrays, RewardConfig, RewardShaper
from warpzone.envs.telemetry import named_info
from warpzone.errors import ConfigError

Info = dict[str, Any]
Result = tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]


class TelemetryVector(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """A vector of environments whose rewards and info come from the engine's telemetry."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"], "render_fps": 60, "autoreset_mode": AutoresetMode.NEXT_STEP,
    }  # fmt: skip
    view: ViewConfig
    rewards: RewardShaper

    def _describe(
        self, num_envs: int, view: ViewConfig, reward: RewardConfig | None, mode: AutoresetMode, seed: int | None
    ) -> None:  # fmt: skip
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or not 1 <= num_envs <= MAX_ENVS:
            raise ConfigError(f"num_envs must be a whole number from 1 to {MAX_ENVS}, not {num_envs!r}.")
        self.num_envs, self.view = num_envs, view
        self.autoreset_mode = mode
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.action_meanings = action_names(view.action_type)
        self.single_observation_space = gym.spaces.Box(0, 255, view.shape, np.uint8)
        self.single_action_space = gym.spaces.Discrete(view.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.rewards = RewardShaper(reward or RewardConfig(), num_envs, by_jumps=view.ground == "stood")
        self._seed = 0 if seed is None else seed
        spread_seeds(self._seed, num_envs)
        self._seeded = False

    def _actions(self, actions: Any) -> NDArray[np.int64]:
        array = np.asarray(actions)
        if array.shape != (self.num_envs,):
            raise ConfigError(
                f"Give one action for each of the {self.num_envs} environments, not an array of shape {array.shape}."
            )
        if array.dtype.kind not in "iu":
            raise ConfigError(f"Actions are whole numbers, not {array.dtype}.")
        return np.ascontiguousarray(array, dtype=np.int64)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> NDArray[np.uint64] | None:
        """The seeds of a reset; None where the random streams continue."""
        if seed is None:
            if self._seeded:
                return None
            seed = self._seed
        self._seeded = True
        return spread_seeds(seed, self.num_envs)


def step_info(fields: Mapping[str, NDArray[np.int32]], rewards: RewardArrays) -> Info:
    """The info of a step; that of a reset with new `RewardArrays`, as nothing was earned yet."""
    info = named_info(fields)
    info["reward_terms"] = dict(rewards.terms)
    info["dx"] = rewards.dx
    return info


def add_finals(
    info: Info, done: NDArray[np.bool_], observations: NDArray[np.uint8], telemetry: NDArray[np.int32]
) -> None:
    """Add the last observations and telemetry of the episodes that ended in a step with SAME_STEP autoreset."""
    info["final_obs"] = observations
    info["final_info"] = named_info(dict(zip(FIELDS, telemetry, strict=True)))
    info["_final_obs"] = info["_final_info"] = done


def spread_seeds(seed: int | Sequence[int | None], num_envs: int) -> NDArray[np.uint64]:
    """One 64-bit seed per environment, from one for all or from a sequence; the same on every backend."""
    if isinstance(seed, int | np.integer):
        # Neighbouring seeds must not give neighbouring environments the same stream.
        first = int(seed) * 0xD1342543DE82EF95
        seeds = [first + (i + 1) * 0x2545F4914F6CDD1D for i in range(num_envs)]
    else:
        given = list(seed) if isinstance(seed, Sequence | np.ndarray) else []
        if len(given) != num_envs or not all(isinstance(s or 0, int | np.integer) for s in given):
            raise ConfigError(f"Give one whole seed, or one for each of the {num_envs} environments.")
        seeds = [int(s or 0) for s in given]
    return np.array([s % 2**64 for s in seeds], np.uint64)
