"""One environment on nes-py with the plain Gymnasium interface, also for Gymnasium's own vectors."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.console import ConsoleFactory
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.envs.rewards import RewardConfig

Info = dict[str, Any]


class BackendEnv(gym.Env[NDArray[np.uint8], np.int64]):
    """Super Mario Bros on gym-super-mario-bros, in this process: `MarioEnv`'s observations, rewards and info.

    An episode that is over stays over until `reset`, as Gymnasium wants of a single environment.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(
        self,
        stage: str = "1-1",
        *,
        view: ViewConfig | None = None,
        reward: RewardConfig | None = None,
        factory: ConsoleFactory | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._vector = BackendVectorEnv(
            1, [stage], view=view, reward=reward, factory=factory, say=lambda line: None,
            backend=BackendConfig(backend="nes-py", force_sync=True),
        )  # fmt: skip
        self.render_mode = render_mode
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space
        self._began_already: tuple[NDArray[np.uint8], Info] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is None and self._began_already is not None:
            # The vector has begun it within the step that ended the last one.
            observation, info = self._began_already
        else:
            observations, infos = self._vector.reset(seed=seed, options=options)
            observation, info = observations[0], _first(infos)
        self._began_already = None
        return observation, info

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """One decision."""
        observations, rewards, terminated, truncated, infos = self._vector.step(np.array([int(action)]))
        observation, info = observations[0], _first(infos)
        if terminated[0] or truncated[0]:
            self._began_already = observation, info
            final = infos["final_info"] | {name: infos[name] for name in ("reward_terms", "dx")}
            observation, info = infos["final_obs"][0], _first(final)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> NDArray[np.uint8] | None:
        """The screen, uint8 [240, 256, 3], if render_mode is rgb_array."""
        return None if self.render_mode is None else self._vector.screen(0)

    def close(self) -> None:
        """End the emulator."""
        self._vector.close()


def _first(info: Info) -> Info:
    """The info of environment 0 as plain values."""
    out: Info = {}
    for name, value in info.items():
        if name in ("final_obs", "final_info", "_final_obs", "_final_info"):
            continue
        if isinstance(value, dict):
            out[name] = _first(value)
        else:
            out[name] = value[0].item() if hasattr(value[0], "item") else value[0]
    return out
