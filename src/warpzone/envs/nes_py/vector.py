"""Many environments on a foreign console, with the interface, telemetry and rewards of `MarioVectorEnv`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.envs.actions import action_names
from warpzone.envs.config import MAX_ENVS, ViewConfig
from warpzone.envs.nes_py.config import BackendConfig, BackendError
from warpzone.envs.nes_py.console import ConsoleFactory, NesPyFactory, told_plainly
from warpzone.envs.nes_py.crew import Crew, InProcess, Say, Workers
from warpzone.envs.nes_py.episode import EpisodeSettings, Outcome
from warpzone.envs.nes_py.marks import diagnostics_folder
from warpzone.envs.rewards import RewardConfig, RewardShaper
from warpzone.envs.stages import parse_stages
from warpzone.errors import ConfigError

Info = dict[str, Any]
Result = tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]
_STATUS = np.array(["small", "tall", "fireball"])
_DEATHS = (1, 4, 5)


class BackendVectorEnv(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """N environments on nes-py, here or in workers, restarting within the step that ends an episode (SAME_STEP).

    A worker that dies or gets stuck is replaced: its episode ends as truncated, `info["worker_lost"]` is true for
    that step, and `workers_lost` counts them. The reward of that step is 0.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 60,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

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
        factory: ConsoleFactory | None = None,
        say: Say = print,
    ) -> None:
        if not 1 <= num_envs <= MAX_ENVS:
            raise ConfigError(f"num_envs must be a whole number from 1 to {MAX_ENVS}, not {num_envs!r}.")
        self.view = view or ViewConfig()
        self.backend = backend or BackendConfig(backend="nes-py")
        self.stage_names = parse_stages(stages)
        self.num_envs = num_envs
        self.threads = 1
        self.autoreset_mode = AutoresetMode.SAME_STEP
        self.action_meanings = action_names(self.view.action_type)
        self.single_observation_space = gym.spaces.Box(0, 255, self.view.shape, np.uint8)
        self.single_action_space = gym.spaces.Discrete(self.view.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.rewards = RewardShaper(reward or RewardConfig(), num_envs, by_jumps=self.view.ground == "stood")
        self.workers_lost = 0
        self._say = say
        self._mode_asked = "async" if self.backend.uses_workers else "sync"
        self._seed, self._seeded = seed, False
        self._factory = factory or NesPyFactory(self.stage_names[0], rom)
        self._settings = EpisodeSettings(self.view, tuple(self.stage_names), self.backend)
        self._sent = False
        self._weights: list[float] | None = None
        self._telemetry = np.zeros((len(FIELDS), num_envs), np.int32)
        self._observations = np.zeros((num_envs, *self.view.shape), np.uint8)
        self._parse_failures = np.zeros(num_envs, np.int64)
        self.diagnostics = diagnostics_folder(self.backend.env_diagnostics_dir)
        began = time.perf_counter()
        self._crew: Crew = self._start()
        self.construction_s = time.perf_counter() - began

    @property
    def mode(self) -> str:
        """Where the environments run: sync (here) or async (workers)."""
        return "async" if isinstance(self._crew, Workers) else "sync"

    @property
    def worker_pids(self) -> list[int | None]:
        """The workers' process ids, for whoever watches them."""
        return self._crew.pids if isinstance(self._crew, Workers) else []

    @property
    def parse_failures(self) -> int:
        """How often an x position could not be read from RAM, over all environments."""
        return int(self._parse_failures.sum())

    # ---- Gymnasium ----

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin episodes. The same seed draws the same stages and idle frames as on the native engine."""
        if options:
            raise ConfigError(f"The nes-py backend knows no reset option, such as {next(iter(options))!r}.")
        self._begin(range(self.num_envs), self._seeds(seed))
        return self._observations.copy(), self._info(self._fields(self._telemetry.copy()))

    def step(self, actions: NDArray[np.int64]) -> Result:
        """One decision in every environment."""
        self.send(actions)
        return self.recv()

    def send(self, actions: NDArray[np.int64]) -> None:
        """Start a step; with workers this returns at once."""
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise ConfigError(f"Give one whole-numbered action for each of the {self.num_envs} environments.")
        if array.min() < 0 or array.max() >= self.view.num_actions:
            raise ConfigError(f"Actions are 0 to {self.view.num_actions - 1}, not {array.tolist()}.")
        if self._sent:
            raise ConfigError("A step is under way: call recv before the next step.")
        self._sent = True
        self._crew.send([int(a) for a in array])

    def recv(self) -> Result:
        """Wait for the step that `send` started, but for no worker beyond its deadline."""
        if not self._sent:
            raise ConfigError("There is nothing to receive: call send first.")
        self._sent = False
        try:
            outcomes = self._crew.receive()
        except BackendError as error:
            self._go_on_here(error)
            outcomes = [None] * self.num_envs
        return self._result(outcomes)

    def close_extras(self, **kwargs: Any) -> None:
        """End the workers and the emulators; logs in a folder of our own stay only if something went wrong."""
        self._crew.close()
        if not self.backend.env_diagnostics_dir and self.mode == self._mode_asked and not self.workers_lost:
            shutil.rmtree(self.diagnostics, ignore_errors=True)

    # ---- beyond Gymnasium ----

    def screen(self, index: int) -> NDArray[np.uint8]:
        """What environment `index` shows, uint8 [240, 256, 3]."""
        screen: NDArray[np.uint8] = self._crew.screen(int(index))
        return screen

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each of `stage_names` is drawn for the episodes that begin from now on."""
        self._weights = [float(w) for w in weights]
        self._crew.set_stage_weights(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """What can be saved. nes-py's consoles can't be: a resumed run begins its episodes anew."""
        return {"rewards": self.rewards.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rewards.load_state_dict(state["rewards"])

    # ---- inside ----

    def _start(self) -> Crew:
        """The crew that the settings ask for, or all in this process if workers fail and that is allowed."""
        prewarm(self._factory, self.stage_names, self.backend, self._say)
        if not self.backend.uses_workers:
            return self._here()
        crew = Workers(
            self.num_envs, self._factory, self._settings, self.diagnostics, self._say, self.backend
        )
        try:
            crew.start()
            return crew
        except BackendError as error:
            crew.close()
            self._refuse_if_strict(error)
            return self._here()
        except BaseException:
            crew.close()
            raise

    def _here(self) -> InProcess:
        crew = InProcess(self.num_envs, self._factory, self._settings, self.diagnostics, self._say)
        crew.start()
        return crew

    def _refuse_if_strict(self, error: BackendError) -> None:
        if self.backend.strict_env:
            raise BackendError(f"{error} (--strict-env: not going on without workers)") from error
        self._say(f"[env][warn] {error} Going on with all environments in this process.")

    def _go_on_here(self, error: BackendError) -> None:
        """Workers failed for good in the middle of a run."""
        self._crew.close()
        self._refuse_if_strict(error)
        self._crew = self._here()
        if self._weights is not None:
            self._crew.set_stage_weights(self._weights)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        """One for each environment, spread as the native engine spreads them."""
        if seed is None:
            if self._seeded:
                return [None] * self.num_envs
            seed = self._seed
        self._seeded = True
        if isinstance(seed, int | np.integer):
            first = int(seed) * 0xD1342543DE82EF95
            return [(first + (i + 1) * 0x2545F4914F6CDD1D) & 0xFFFFFFFFFFFFFFFF for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ConfigError(f"Give one seed, or one for each of the {self.num_envs} environments.")
        return [(s or 0) & 0xFFFFFFFFFFFFFFFF for s in seed]

    def _begin(self, indices: Sequence[int], seeds: Sequence[int | None]) -> bool:
        """Reset these environments, on new workers where theirs are lost; true if it came to resetting all of them."""
        began_all = False
        for _ in range(self.backend.env_retries + 2):
            try:
                outcomes = self._crew.reset(indices, seeds)
            except BackendError as error:
                self._go_on_here(error)
                began_all, indices = True, range(self.num_envs)
                seeds = self._new_seeds(indices)
                continue
            for i, outcome in zip(indices, outcomes, strict=True):
                if outcome is not None:
                    self._keep(i, outcome)
            lost = [at for at, outcome in enumerate(outcomes) if outcome is None]
            if not lost:
                return began_all
            indices, seeds = [indices[at] for at in lost], [seeds[at] for at in lost]
        raise BackendError(f"Environment {indices[0]} was lost at every reset.")

    def _new_seeds(self, indices: Sequence[int]) -> list[int | None]:
        """Other streams than those that lost workers began with: their episodes need not come again."""
        return [self._seed + 0x9E3779B97F4A7C15 * (self.workers_lost + i + 1) for i in indices]

    def _keep(self, i: int, outcome: Outcome) -> None:
        self._observations[i] = outcome.observation
        self._telemetry[:, i] = outcome.telemetry
        self._parse_failures[i] = max(self._parse_failures[i], outcome.parse_failures)

    def _fields(self, telemetry: NDArray[np.int32]) -> dict[str, NDArray[np.int32]]:
        return dict(zip(FIELDS, telemetry, strict=True))

    def _info(self, fields: dict[str, NDArray[np.int32]]) -> Info:
        info: Info = dict(fields)
        info["flag_get"] = fields["flag_get"] != 0
        info["status"] = _STATUS[np.minimum(fields["status"], 2)]
        return info

    def _result(self, outcomes: Sequence[Outcome | None]) -> Result:
        before = self._telemetry.copy()
        ended = before.copy()
        final_observations = self._observations.copy()
        terminated = np.zeros(self.num_envs, np.bool_)
        truncated = np.zeros(self.num_envs, np.bool_)
        lost = np.array([outcome is None for outcome in outcomes])
        for i, outcome in enumerate(outcomes):
            if outcome is None:
                truncated[i] = True
                continue
            terminated[i], truncated[i] = outcome.terminated, outcome.truncated
            self._keep(i, outcome)
            final = outcome.final_telemetry
            ended[:, i] = outcome.telemetry if final is None else final
            last = outcome.observation if outcome.final_observation is None else outcome.final_observation
            final_observations[i] = last
        if lost.any():
            self.workers_lost += int(lost.sum())
            where = np.flatnonzero(lost).tolist()
            if self._begin(where, self._new_seeds(where)):
                truncated |= ~terminated
        done = terminated | truncated
        end_fields = self._fields(ended)
        died = np.isin(end_fields["end"], _DEATHS) & done
        rewards, terms = self.rewards(self._fields(before), end_fields, died)
        info = self._info(self._fields(self._telemetry.copy()))
        info["reward_terms"] = terms
        info["dx"] = self.rewards.last_dx
        info["worker_lost"] = lost
        info["parse_fail"] = self._parse_failures.copy()
        if done.any():
            info["final_obs"] = final_observations
            info["final_info"] = self._info(end_fields)
            info["_final_obs"] = info["_final_info"] = done
        return self._observations.copy(), rewards, terminated, truncated, info


def prewarm(factory: ConsoleFactory, stages: Sequence[str], backend: BackendConfig, say: Say) -> None:
    """Make and close environments in this process first, as the settings ask."""
    if not (backend.parent_prewarm or backend.parent_prewarm_all):
        return
    began = time.perf_counter()
    with told_plainly():
        console = factory(lambda mark: None)
    warmed = stages if backend.parent_prewarm_all else stages[:1]
    try:
        for stage in warmed:
            console.begin(stage)
    finally:
        console.close()
    say(f"[env] prewarmed {', '.join(warmed)} ({time.perf_counter() - began:.2f} s)")
