"""Small environments with the interface of MarioVectorEnv, for tests of collecting and learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HEIGHT = WIDTH = 8


class FakeEnvs:
    """N environments that restart within a step and reuse their observation memory, as the native ones do."""

    num_actions = 2

    def __init__(self, num_envs: int, seed: int = 0) -> None:
        self.num_envs = num_envs
        self.rng = np.random.default_rng(seed)
        self.step_of = np.zeros(num_envs, np.int64)
        self.buffer = np.zeros((num_envs, 1, HEIGHT, WIDTH), np.uint8)
        self.pending: NDArray[np.int64] | None = None

    def begin_episode(self, i: int) -> None:
        raise NotImplementedError

    def outcome(self, i: int, action: int) -> tuple[float, bool, bool]:
        """Reward, terminated and truncated of a step of environment i."""
        raise NotImplementedError

    def draw(self, i: int) -> NDArray[np.uint8]:
        raise NotImplementedError

    def info(self) -> dict[str, Any]:
        return {"stage_index": np.zeros(self.num_envs, np.int64), "x_pos": self.step_of.copy()}

    def reset(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        for i in range(self.num_envs):
            self._begin(i)
        return self._observations(), self.info()

    def send(self, actions: NDArray[np.int64], /) -> None:
        assert self.pending is None, "a step is still under way"
        self.pending = actions.copy()

    def recv(self) -> tuple[Any, ...]:
        assert self.pending is not None, "nothing was sent"
        outcomes = [self.outcome(i, int(self.pending[i])) for i in range(self.num_envs)]
        self.pending = None
        rewards = np.array([o[0] for o in outcomes], np.float32)
        terminated = np.array([o[1] for o in outcomes])
        truncated = np.array([o[2] for o in outcomes])
        self.step_of += 1
        final_obs = np.stack([self.draw(i) for i in range(self.num_envs)])
        final_info = self.info()
        for i in np.flatnonzero(terminated | truncated):
            self._begin(int(i))
        info = self.info() | {"final_obs": final_obs, "final_info": final_info}
        return self._observations(), rewards, terminated, truncated, info

    def _begin(self, i: int) -> None:
        self.step_of[i] = 0
        self.begin_episode(i)

    def _observations(self) -> NDArray[np.uint8]:
        for i in range(self.num_envs):
            self.buffer[i] = self.draw(i)
        return self.buffer


class CountingEnvs(FakeEnvs):
    """Every picture is different; episodes have random lengths and end in all three ways."""

    def __init__(self, num_envs: int, seed: int = 0, num_stages: int = 3) -> None:
        super().__init__(num_envs, seed)
        self.num_stages = num_stages
        self.episode = np.zeros(num_envs, np.int64)
        self.length = np.zeros(num_envs, np.int64)

    def begin_episode(self, i: int) -> None:
        self.episode[i] += 1
        self.length[i] = self.rng.integers(1, 9)

    def outcome(self, i: int, action: int) -> tuple[float, bool, bool]:
        ends = self.step_of[i] + 1 == self.length[i]
        cut = bool(ends and self.length[i] % 2)
        return float(action + i), bool(ends and not cut), cut

    def draw(self, i: int) -> NDArray[np.uint8]:
        picture = np.full((1, HEIGHT, WIDTH), 20 * i, np.uint8)
        picture[0, 0] = self.episode[i] % 256
        picture[0, 1] = self.step_of[i]
        return picture

    def info(self) -> dict[str, Any]:
        stage = (self.episode + np.arange(self.num_envs)) % self.num_stages
        return super().info() | {"stage_index": stage, "flag_get": self.step_of % 2 == 0}


class TMaze(FakeEnvs):
    """The first picture shows a side; after a corridor the action must name it. Only a memory can."""

    def __init__(self, num_envs: int, seed: int = 0, corridor: int = 4) -> None:
        super().__init__(num_envs, seed)
        self.corridor = corridor
        self.side = np.zeros(num_envs, np.int64)

    def begin_episode(self, i: int) -> None:
        self.side[i] = self.rng.integers(2)

    def outcome(self, i: int, action: int) -> tuple[float, bool, bool]:
        if self.step_of[i] < self.corridor:
            return 0.0, False, False
        return (1.0 if action == self.side[i] else -1.0), True, False

    def draw(self, i: int) -> NDArray[np.uint8]:
        picture = np.zeros((1, HEIGHT, WIDTH), np.uint8)
        if self.step_of[i] == 0:
            picture[0, :, :4] = 255 * self.side[i]
            picture[0, :, 4:] = 255 * (1 - self.side[i])
        elif self.step_of[i] == self.corridor:
            picture[:] = 128
        return picture


class DelayedCredit(FakeEnvs):
    """The first action opens one of two doors; only the end of the corridor tells which was right."""

    num_actions = 3

    def __init__(self, num_envs: int, seed: int = 0, corridor: int = 4) -> None:
        super().__init__(num_envs, seed)
        self.corridor = corridor
        self.door = np.zeros(num_envs, np.int64)

    def begin_episode(self, i: int) -> None:
        self.door[i] = -1

    def outcome(self, i: int, action: int) -> tuple[float, bool, bool]:
        if self.step_of[i] == 0:
            self.door[i] = action
        ends = self.step_of[i] + 1 == self.corridor
        return (1.0 if ends and self.door[i] == 1 else 0.0), bool(ends), False

    def draw(self, i: int) -> NDArray[np.uint8]:
        picture = np.zeros((1, HEIGHT, WIDTH), np.uint8)
        picture[0, : 2 * (self.step_of[i] + 1), :4] = 255
        if self.door[i] >= 0:
            picture[0, 3 * self.door[i] % HEIGHT, 4:] = 200
        return picture
