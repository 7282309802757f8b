"""Many environments on nes-py, with the interface, telemetry and rewards of `MarioVectorEnv`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.envs.config import ViewConfig
from warpzone.envs.interface import Info, Result, TelemetryVector, add_finals, step_info
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.emulators import EmulatorFactory, NesPyFactory, plain_errors
from warpzone.envs.nes_py.episode import EpisodeSettings
from warpzone.envs.nes_py.worker import diagnostics_folder
from warpzone.envs.nes_py.workers import Environments, Reply, Say
from warpzone.envs.rewards import RewardArrays, RewardConfig
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError


class BackendVectorEnv(TelemetryVector):
    """N environments on nes-py, in this process or in workers, with SAME_STEP autoreset.

    A worker that dies or gets stuck is replaced: its episode ends as truncated, `info["worker_lost"]` is true for
    that step, and `workers_lost` counts them. The reward of that step is 0.
    """

    has_snapshots = False

    def __init__(
        self,
        num_envs: int = 1,
        stages: Sequence[str] | str = ("1-1",),
        *,
        view: ViewConfig | None = None,
        backend: BackendConfig | None = None,
        reward: RewardConfig | None = None,
        seed: int = 0,
        rom: str | None = None,
        factory: EmulatorFactory | None = None,
        say: Say = print,
    ) -> None:
        self._describe(num_envs, view or ViewConfig(), reward, AutoresetMode.SAME_STEP, seed)
        if self.view.random_start:
            raise ConfigError("The nes-py backend can't set the game's clock: leave --random-start out.")
        self.backend = backend or BackendConfig(backend="nes-py")
        self.stage_names = parse_stages(stages)
        self.threads = 1
        self._sent = False
        self._telemetry = np.zeros((len(FIELDS), num_envs), np.int32)
        self._observations = np.zeros((num_envs, *self.view.shape), np.uint8)
        self._parse_failures = np.zeros(num_envs, np.int64)
        factory = factory or NesPyFactory(self.stage_names[0], rom)
        prewarm(factory, self.stage_names, self.backend, say)
        self.diagnostics = diagnostics_folder(self.backend.env_diagnostics_dir)
        settings = EpisodeSettings(self.view, tuple(self.stage_names), self.backend)
        self._envs = Environments(num_envs, factory, settings, self.diagnostics, say, seed)

    @property
    def mode(self) -> str:
        """Where the environments run: sync (this process) or async (workers)."""
        return self._envs.mode

    @property
    def workers_lost(self) -> int:
        """How many workers have failed, died or got stuck."""
        return self._envs.lost

    @property
    def worker_pids(self) -> list[int]:
        """The workers' process ids."""
        return self._envs.pids

    # ---- Gymnasium ----

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin episodes. The same seed samples the same stages and idle frames as on the native engine."""
        if options:
            raise ConfigError(f"The nes-py backend has no reset option {next(iter(options))!r}.")
        self._refuse_if_busy()
        seeds = self._seeds(seed)
        self._begin({i: None if seeds is None else int(seeds[i]) for i in range(self.num_envs)})
        info = step_info(_fields(self._telemetry.copy()), RewardArrays(self.num_envs))
        return self._observations.copy(), info

    def step(self, actions: NDArray[np.int64]) -> Result:
        """One decision in every environment."""
        self.send(actions)
        return self.recv()

    def send(self, actions: NDArray[np.int64]) -> None:
        """Start a step; with workers this returns at once."""
        array = self._actions(actions)
        if array.min() < 0 or array.max() >= self.view.num_actions:
            raise ConfigError(f"Actions are 0 to {self.view.num_actions - 1}, not {array.tolist()}.")
        self._refuse_if_busy()
        if not self._seeded:
            raise ConfigError("Call reset before the first step.")
        self._sent = True
        self._envs.send(array.tolist())

    def recv(self) -> Result:
        """Wait for the step that `send` started, but for no worker beyond its deadline."""
        if not self._sent:
            raise ConfigError("There is nothing to receive: call send first.")
        self._sent = False
        return self._result(self._envs.receive())

    def close_extras(self, **kwargs: Any) -> None:
        """End the workers and emulators; logs in a temporary folder are kept only if something went wrong."""
        fine = self.mode == ("async" if self.backend.uses_workers else "sync") and not self.workers_lost
        self._envs.close()
        if not self.backend.env_diagnostics_dir and fine:
            shutil.rmtree(self.diagnostics, ignore_errors=True)

    # ---- beyond Gymnasium ----

    def screen(self, index: int) -> NDArray[np.uint8]:
        """The last frame of environment `index`, uint8 [240, 256, 3]."""
        self._refuse_if_busy()
        screen: NDArray[np.uint8] = self._envs.screen(int(index))
        return screen

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each of `stage_names` is sampled, from the next step or reset on."""
        self._envs.weights = [float(w) for w in weights]

    def state_dict(self) -> dict[str, Any]:
        """What can be saved. nes-py's emulators can't be: a resumed run begins new episodes."""
        return {"rewards": self.rewards.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rewards.load_state_dict(state["rewards"])

    def queue_start(self, index: int, blob: bytes) -> None:
        """Refused: nes-py's emulators have no snapshots."""
        raise ConfigError("nes-py can't begin an episode from a snapshot: use the native backend.")

    def metrics(self) -> dict[str, Any]:
        """What `workers_lost` counts, for the run's metrics."""
        return {"workers_lost": self.workers_lost}

    # ---- inside ----

    def _refuse_if_busy(self) -> None:
        if self.closed:
            raise ConfigError("The environment is closed: make a new one.")
        if self._sent:
            raise ConfigError("A step is under way: call recv before the next step.")

    def _begin(self, seeds: dict[int, int | None]) -> list[int]:
        """Begin episodes in these environments and in all that replace lost ones; the indices of both."""
        replies = self._envs.reset(seeds)
        for i, (observation, info) in replies.items():
            self._keep(i, observation, info)
        return list(replies)

    def _keep(self, i: int, observation: NDArray[np.uint8], info: Info) -> None:
        self._observations[i] = observation[0]
        self._telemetry[:, i] = info["telemetry"][0]
        self._parse_failures[i] = max(self._parse_failures[i], info["parse_fail"][0])

    def _result(self, replies: Sequence[Reply | None]) -> Result:
        before, ended = self._telemetry.copy(), self._telemetry.copy()
        final_observations = self._observations.copy()
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        lost = np.array([reply is None for reply in replies])
        for i, reply in enumerate(replies):
            if reply is None:
                continue
            observation, _, ends, limits, info = reply
            terminated[i], truncated[i] = ends[0], limits[0]
            self._keep(i, observation, info)
            over = ends[0] or limits[0]
            final_observations[i] = info["final_obs"][0] if over else observation[0]
            ended[:, i] = info["final_info"]["telemetry"][0] if over else info["telemetry"][0]
        if lost.any():
            # Lost episodes are truncated where they were seen last; so are all if the workers are given up.
            began = self._begin({})
            truncated[began] |= ~terminated[began]
        done = terminated | truncated
        rewards = RewardArrays(self.num_envs)
        self.rewards.of_telemetry(before, ended, np.zeros_like(done), rewards)
        info = step_info(_fields(self._telemetry.copy()), rewards)
        info["worker_lost"] = lost
        info["parse_fail"] = self._parse_failures.copy()
        if done.any():
            add_finals(info, done, final_observations, ended)
        return self._observations.copy(), rewards.total, terminated, truncated, info


def _fields(telemetry: NDArray[np.int32]) -> dict[str, NDArray[np.int32]]:
    return dict(zip(FIELDS, telemetry, strict=True))


def prewarm(factory: EmulatorFactory, stages: Sequence[str], backend: BackendConfig, say: Say) -> None:
    """Make and close environments in this process first, as the settings ask."""
    if not (backend.parent_prewarm or backend.parent_prewarm_all):
        return
    began = time.perf_counter()
    with plain_errors():
        emulator = factory(lambda stage: None)
    warmed = stages if backend.parent_prewarm_all else stages[:1]
    try:
        for stage in warmed:
            emulator.begin(stage)
    finally:
        emulator.close()
    say(f"[env] prewarmed {', '.join(warmed)} ({time.perf_counter() - began:.2f} s)")
