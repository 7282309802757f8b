"""One environment with the plain Gymnasium interface."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from warpzone.envs.vector import MarioVectorEnv

Info = dict[str, Any]


class MarioEnv(gym.Env[NDArray[np.uint8], np.int64]):
    """Super Mario Bros as `gymnasium.make("warpzone/SuperMarioBros-v0", stage="1-1")` gives it.

    Takes the arguments of `MarioVectorEnv`, less the number of environments, threads and `autoreset_mode`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(self, stage: str | None = None, *, render_mode: str | None = None, **options: Any) -> None:
        self._vector = MarioVectorEnv(
            1, stage, render_mode=render_mode, threads=1, autoreset_mode=AutoresetMode.DISABLED, **options
        )
        self.render_mode = render_mode
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space
        self.action_meanings = self._vector.action_meanings

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin an episode. `options`: "stage" or "snapshot"."""
        super().reset(seed=seed)
        observations, info = self._vector.reset(seed=seed, options=options)
        return observations[0], _first(info)

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """One decision."""
        observations, rewards, terminated, truncated, info = self._vector.step(np.array([action]))
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), _first(info)

    def render(self) -> NDArray[np.uint8] | None:
        """The screen, uint8 [240, 256, 3], if render_mode is rgb_array."""
        return None if self.render_mode is None else self._vector.screen(0)

    def close(self) -> None:
        """Free the memory."""
        self._vector.close()

    @property
    def ram(self) -> NDArray[np.uint8]:
        """A copy of the RAM, uint8 [2048]."""
        ram: NDArray[np.uint8] = self._vector.ram[0]
        return ram

    def snapshot(self) -> bytes:
        """Everything that the rest of the episode depends on."""
        return self._vector.snapshot(0)

    def restore(self, blob: bytes) -> None:
        """Return to a snapshot."""
        self._vector.restore(0, blob)


def _first(info: Info) -> Info:
    """The info of environment 0 as plain values."""
    out: Info = {}
    for name, value in info.items():
        if isinstance(value, dict):
            out[name] = _first(value)
        else:
            out[name] = value[0].item() if hasattr(value[0], "item") else value[0]
    return out
