"""N environments in this process or in workers: staged start, replacement of lost workers, fallback to this process."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.envs.config import cores
from warpzone.envs.nes_py.config import BackendError
from warpzone.envs.nes_py.emulators import EmulatorFactory, plain_errors
from warpzone.envs.nes_py.episode import EpisodeSettings
from warpzone.envs.nes_py.worker import CLOSE_TIMEOUT_S, EnvPlan, InProcess, Lost, Worker

Say = Callable[[str], None]
Reply = tuple[Any, ...]
"""What `reset` or `step` of a Gymnasium vector of one environment returns."""


class Environments:
    """N environments, in workers if the settings ask for them.

    A lost worker is reported and replaced up to `env_retries` times in a row. After that all environments are made in
    this process, or with `strict_env` BackendError is raised. New environments are `unreset` until `reset` is called.
    """

    def __init__(
        self, num_envs: int, factory: EmulatorFactory, settings: EpisodeSettings, folder: Path, say: Say, seed: int
    ) -> None:  # fmt: skip
        self.lost = 0
        self.mode = "async" if settings.backend.uses_workers else "sync"
        self.unreset: set[int] = set()
        self._num_envs, self._factory, self._settings = num_envs, factory, settings
        self._config, self._folder, self._say, self._seed = settings.backend, folder, say, seed
        self.weights: Sequence[float] = [1.0] * len(settings.stages)
        """How often each stage is sampled, from the next step or reset on."""
        self._applied: Sequence[float] = self.weights
        self._envs: dict[int, Worker | InProcess] = {}
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [env.process.pid for env in self._envs.values() if isinstance(env, Worker)]

    def reset(self, seeds: Mapping[int, int | None]) -> dict[int, Reply]:
        """Begin episodes in these environments and in all unreset ones; the replies of all that began."""
        self._apply_weights()
        replies: dict[int, Reply] = {}
        waiting = dict(seeds)
        for _ in range(self._config.env_retries + 2):
            # An environment that replaces another has a new stream: the lost episode need not come again.
            new = {i: self._seed + 0x9E3779B97F4A7C15 * (self.lost + i + 1) for i in self.unreset}
            waiting = {**new, **waiting}
            for i, seed in waiting.items():
                self._envs[i].ask("reset", seed=[seed])
            deadline = time.monotonic() + self._config.reset_timeout_s(self._num_envs)
            for i in waiting:
                reply = self._answer(i, "reset", deadline)
                if reply is not None:
                    replies[i] = reply
                    self.unreset.discard(i)
            if not self.unreset:
                return replies
            waiting = {i: seed for i, seed in waiting.items() if i in self.unreset}
        raise BackendError(f"Environment {min(self.unreset)} was lost at every reset: see {self._folder}.")

    def send(self, actions: Sequence[int]) -> None:
        self._apply_weights()
        for i, action in enumerate(actions):
            if i not in self.unreset:
                self._envs[i].ask("step", np.array([action]))

    def receive(self) -> list[Reply | None]:
        """The replies; None where an environment was lost: its successor must be reset."""
        deadline = time.monotonic() + self._config.env_step_timeout
        replies: list[Reply | None] = []
        for i in range(self._num_envs):
            replies.append(None if i in self.unreset else self._answer(i, "step", deadline))
        return [None if i in self.unreset else reply for i, reply in enumerate(replies)]

    def screen(self, index: int) -> Any:
        self._envs[index].ask("call", "screen")
        reply = self._answer(index, "call", time.monotonic() + self._config.env_step_timeout)
        if reply is None:
            raise BackendError(f"Environment {index} was lost: reset it first.")
        return reply[0]

    def close(self) -> None:
        workers = [env for env in self._envs.values() if isinstance(env, Worker) and not env.closed]
        for worker in workers:
            worker.ask("call", "end")
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for worker in workers:
            with contextlib.suppress(Lost):
                worker.answer("call", deadline)
            worker.kill()
        for env in self._envs.values():
            env.close()
        self._envs = {}

    def _apply_weights(self) -> None:
        if self._applied is self.weights:
            return
        self._applied = self.weights
        for env in self._envs.values():
            env.ask("call", "set_stage_weights", self.weights)
        deadline = time.monotonic() + self._config.env_step_timeout
        for i in range(self._num_envs):
            self._answer(i, "call", deadline)

    def _start(self) -> None:
        if self.mode == "sync":
            self._start_here()
            return
        if self._config.start_method() == "forkserver":
            multiprocessing.get_context("forkserver").set_forkserver_preload([EnvPlan.__module__])
        try:
            # In order, as many at a time as there are cores.
            at_once = cores()
            for i in range(self._num_envs + at_once - 1):
                if i < self._num_envs:
                    time.sleep(self._config.worker_start_delay if i else 0.0)
                    self._launch(i)
                if i >= at_once - 1:
                    self._await_start(i - at_once + 1)
        except BackendError as error:
            self._fall_back(error)

    def _start_here(self) -> None:
        self.mode = "sync"
        for i in range(self._num_envs):
            began = time.monotonic()
            with plain_errors():
                self._envs[i] = InProcess(self._plan(i))
            self._made(i, began)

    def _plan(self, index: int) -> EnvPlan:
        return EnvPlan(index, self._factory, self._settings, self._folder, self.weights)

    def _made(self, index: int, began: float) -> None:
        self.unreset.add(index)
        took_s = time.monotonic() - began
        self._say(f"[env] constructing env {index + 1}/{self._num_envs} ({took_s:.2f} s)")

    def _launch(self, index: int) -> Worker:
        with plain_errors():
            worker = self._envs[index] = Worker(self._plan(index))
        return worker

    def _await_start(self, index: int) -> None:
        """Wait until a worker is ready, replacing it as often as allowed."""
        worker = self._envs[index]
        for attempts_left in reversed(range(self._config.env_retries + 1)):
            assert isinstance(worker, Worker)
            try:
                worker.answer("call", worker.started + self._config.reset_timeout_s(self._num_envs))
            except Lost as lost:
                self._say(f"[env][warn] {lost}")
                worker.kill()
                if attempts_left:
                    worker = self._launch(index)
                continue
            self._made(index, worker.started)
            return
        raise BackendError(
            f"Worker {index} did not start in {self._config.env_retries + 1} attempts: "
            f"see the start logs in {self._folder}."
        )

    def _answer(self, index: int, method: str, deadline: float) -> Any:
        """The reply; None if the environment was lost and another one has taken its place."""
        env = self._envs[index]
        try:
            return env.answer(method, deadline)
        except Lost as lost:
            assert isinstance(env, Worker)
            self.lost += 1
            self._say(f"[env][warn] {lost}")
            env.kill()
        try:
            self._launch(index)
            self._await_start(index)
            self._say(f"[env] worker {index} was replaced; its episode counts as truncated")
        except BackendError as error:
            self._fall_back(error)
        return None

    def _fall_back(self, error: BackendError) -> None:
        """Workers failed for good."""
        self.close()
        if self._config.strict_env:
            raise BackendError(f"{error} (--strict-env: not continuing without workers)") from error
        self._say(f"[env][warn] {error} Continuing with all environments in this process.")
        self._start_here()
