"""Those who play: all environments in this process, or each in a supervised worker of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from warpzone.envs.nes_py.config import BackendConfig, BackendError
from warpzone.envs.nes_py.console import ConsoleFactory, timed_console, told_plainly
from warpzone.envs.nes_py.episode import Episodes, EpisodeSettings, Outcome
from warpzone.envs.nes_py.marks import MarkWriter, last_stage
from warpzone.envs.nes_py.stacks import stacks_of
from warpzone.envs.nes_py.worker import WorkerPlan, picture_memory, work

Say = Callable[[str], None]
CLOSE_TIMEOUT_S = 2.0
_PRELOAD = ["warpzone.envs.nes_py.worker"]


class Crew(Protocol):
    """Plays N environments. An outcome is None where a worker was lost: its environment is new and must be reset."""

    def start(self) -> list[float]:
        """Make every environment, in order; the seconds each took."""

    def reset(self, indices: Sequence[int], seeds: Sequence[int | None]) -> list[Outcome | None]: ...

    def send(self, actions: Sequence[int]) -> None: ...

    def receive(self) -> list[Outcome | None]: ...

    def set_stage_weights(self, weights: Sequence[float]) -> None: ...

    def screen(self, index: int) -> Any: ...

    def close(self) -> None: ...


class InProcess:
    """All environments here, one after the other."""

    def __init__(
        self, num_envs: int, factory: ConsoleFactory, settings: EpisodeSettings, folder: Path, say: Say
    ) -> None:
        self._num_envs, self._factory, self._settings = num_envs, factory, settings
        self._folder, self._say = folder, say
        self._episodes: list[Episodes] = []
        self._outcomes: list[Outcome | None] = []

    def start(self) -> list[float]:
        took = []
        for i in range(self._num_envs):
            with told_plainly():
                console, seconds = timed_console(self._factory, MarkWriter(self._folder, i))
            self._episodes.append(Episodes(console, self._settings))
            took.append(seconds)
            self._say(f"[env] constructing env {i + 1}/{self._num_envs} ({seconds:.2f} s)")
        return took

    def reset(self, indices: Sequence[int], seeds: Sequence[int | None]) -> list[Outcome | None]:
        return [self._episodes[i].reset(seed) for i, seed in zip(indices, seeds, strict=True)]

    def send(self, actions: Sequence[int]) -> None:
        self._outcomes = [e.step(a) for e, a in zip(self._episodes, actions, strict=True)]

    def receive(self) -> list[Outcome | None]:
        return self._outcomes

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        for episodes in self._episodes:
            episodes.set_stage_weights(weights)

    def screen(self, index: int) -> Any:
        return self._episodes[index].console.screen.copy()

    def close(self) -> None:
        for episodes in self._episodes:
            episodes.console.close()
        self._episodes = []


class Lost(Exception):
    """A worker that failed, died or got stuck; the message names it and its last stage."""


class _Worker:
    """One worker process, its pipe and its deadline."""

    def __init__(self, plan: WorkerPlan, context: Any) -> None:
        self.plan = plan
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=work, args=(plan, theirs), name=f"warpzone-env-{plan.index}", daemon=True
        )
        self.started = time.monotonic()
        self.process.start()
        theirs.close()

    def answer(self, deadline: float) -> Any:
        """What the worker says next; raises Lost if it dies, fails or says nothing until then."""
        left = max(0.0, deadline - time.monotonic())
        if not self.pipe.poll(0) and not wait([self.pipe, self.process.sentinel], left):
            raise Lost(self._describe(f"is stuck: no answer for {time.monotonic() - self.started:.1f} s"))
        try:
            kind, content = self.pipe.recv() if self.pipe.poll(0) else ("dead", None)
        except (EOFError, OSError):
            kind, content = "dead", None
        if kind == "dead":
            self.process.join(CLOSE_TIMEOUT_S)
            code = self.process.exitcode
            how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit status {code}"
            raise Lost(self._describe(f"died ({how})"))
        if kind == "error":
            raise Lost(self._describe(f"failed: {content}"))
        return content

    def ask(self, request: str, argument: Any = None) -> None:
        self.started = time.monotonic()
        # A dead worker is noticed when its answer is awaited.
        with contextlib.suppress(OSError):
            self.pipe.send((request, argument))

    def _describe(self, what: str) -> str:
        pid = self.process.pid or 0
        stage = last_stage(self.plan.diagnostics, self.plan.index, pid)
        return f"worker {self.plan.index} (pid {pid}) {what}; last stage mark: {stage or 'none'}"

    def kill(self) -> None:
        self.process.kill()
        self.process.join(CLOSE_TIMEOUT_S)
        self.pipe.close()


class Workers:
    """Each environment in a process of its own, watched: none is waited for beyond its deadline.

    Workers start in order, as many at a time as there are cores. One that fails is killed, reported with its last stage
    mark and stack, and replaced up to `env_retries` times; then BackendError.
    """

    def __init__(
        self,
        num_envs: int,
        factory: ConsoleFactory,
        settings: EpisodeSettings,
        folder: Path,
        say: Say,
        config: BackendConfig,
    ) -> None:
        self._num_envs, self._factory, self._settings = num_envs, factory, settings
        self._folder, self._say, self._config = folder, say, config
        self._start_timeout_s = config.reset_timeout_s(num_envs)
        self._context: Any = multiprocessing.get_context(config.start_method())
        if config.start_method() == "forkserver":
            self._context.set_forkserver_preload(_PRELOAD)
        size = 2 * int(np.prod(settings.view.shape))
        self._pictures = [
            self._context.RawArray("B", size) if config.env_shared_memory else None for _ in range(num_envs)
        ]
        self._workers: list[_Worker | None] = [None] * num_envs
        self._weights: Sequence[float] | None = None
        self.replaced = 0

    @property
    def pids(self) -> list[int | None]:
        """The workers' process ids."""
        return [worker.process.pid if worker else None for worker in self._workers]

    def start(self) -> list[float]:
        took = [0.0] * self._num_envs
        at_once = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        for i in range(self._num_envs):
            if i and self._config.worker_start_delay:
                time.sleep(self._config.worker_start_delay)
            self._launch(i)
            if i >= at_once - 1:
                took[i - at_once + 1] = self._await_start(i - at_once + 1)
        for i in range(max(0, self._num_envs - at_once + 1), self._num_envs):
            took[i] = self._await_start(i)
        return took

    def reset(self, indices: Sequence[int], seeds: Sequence[int | None]) -> list[Outcome | None]:
        for i, seed in zip(indices, seeds, strict=True):
            self._worker(i).ask("reset", seed)
        deadline = time.monotonic() + self._start_timeout_s
        return [self._outcome(i, deadline) for i in indices]

    def send(self, actions: Sequence[int]) -> None:
        for i, action in enumerate(actions):
            self._worker(i).ask("step", action)

    def receive(self) -> list[Outcome | None]:
        deadline = time.monotonic() + self._config.env_step_timeout
        return [self._outcome(i, deadline) for i in range(self._num_envs)]

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        self._weights = list(weights)
        for i in range(self._num_envs):
            self._worker(i).ask("weights", self._weights)

    def screen(self, index: int) -> Any:
        self._worker(index).ask("screen")
        return self._worker(index).answer(time.monotonic() + self._config.env_step_timeout)

    def close(self) -> None:
        workers = [worker for worker in self._workers if worker is not None]
        for worker in workers:
            worker.ask("close")
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.kill()
        self._workers = [None] * self._num_envs

    def _worker(self, index: int) -> _Worker:
        worker = self._workers[index]
        if worker is None:
            raise BackendError("The environment is closed: make a new one.")
        return worker

    def _launch(self, index: int) -> None:
        plan = WorkerPlan(index, self._factory, self._settings, self._folder, self._pictures[index])
        self._workers[index] = _Worker(plan, self._context)

    def _await_start(self, index: int) -> float:
        """Wait until the worker is ready, replacing it as often as allowed; the seconds it took."""
        for attempt in range(self._config.env_retries + 1):
            worker = self._worker(index)
            launched = worker.started
            try:
                worker.answer(launched + self._start_timeout_s)
            except Lost as lost:
                self._report(worker, lost)
                if attempt < self._config.env_retries:
                    self._launch(index)
                continue
            seconds = time.monotonic() - launched
            self._say(f"[env] constructing env {index + 1}/{self._num_envs} ({seconds:.2f} s)")
            if self._weights is not None:
                worker.ask("weights", self._weights)
            return seconds
        raise BackendError(
            f"Worker {index} did not start in {self._config.env_retries + 1} attempts: see the stage marks in "
            f"{self._folder}."
        )

    def _outcome(self, index: int, deadline: float) -> Outcome | None:
        """The worker's answer; None if it was lost and another one now stands in its place."""
        worker = self._worker(index)
        try:
            outcome: Outcome = worker.answer(deadline)
        except Lost as lost:
            self._report(worker, lost)
            self._launch(index)
            self._await_start(index)
            self.replaced += 1
            self._say(f"[env] worker {index} was replaced; its episode counts as truncated")
            return None
        if worker.plan.pictures is not None:
            memory = picture_memory(worker.plan.pictures, self._settings.view.shape)
            outcome.observation = memory[0]
            if outcome.final_observation is not None:
                outcome.final_observation = memory[1]
        return outcome

    def _report(self, worker: _Worker, lost: Lost) -> None:
        """Say what happened, keep the stacks, and end the process."""
        pid = worker.process.pid or 0
        stack = stacks_of(pid, self._folder, worker.plan.index) if worker.process.is_alive() else ""
        self._say(f"[env][warn] {lost}" + (f"\n{stack}" if stack else ""))
        worker.kill()
