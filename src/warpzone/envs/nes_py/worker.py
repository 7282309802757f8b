"""One environment in this process or in a worker process, as a Gymnasium vector of one environment.

Gymnasium does the process, pipe, shared memory and autoreset. Added here: a log of the start, and a deadline for
every answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from warpzone.envs.nes_py.emulators import EmulatorFactory
from warpzone.envs.nes_py.episode import EpisodeEnv, EpisodeSettings

STAGES = ("start", "patch", "import", "make", "done")
"""In this order. `error` follows the stage that failed."""
CLOSE_TIMEOUT_S = 2.0
_STACK_TIMEOUT_S = 1.0
_STACK_LINES = 30
"""Lines of a stack that are shown; the whole is in the diagnostics folder."""


@dataclass(frozen=True)
class EnvPlan:
    """What an environment is made from; picklable."""

    index: int
    factory: EmulatorFactory
    settings: EpisodeSettings
    diagnostics: Path
    weights: Sequence[float]


class PlannedEnv(EpisodeEnv):
    """An environment that has only its spaces until `make` is called, so that making it can have a deadline."""

    def __init__(self, plan: EnvPlan) -> None:
        super().__init__(plan.settings)
        self._plan = plan
        self.set_stage_weights(plan.weights)

    def make(self) -> None:
        log = StartLog(self._plan.diagnostics, self._plan.index)
        log("start")
        self.emulator = self._plan.factory(log)
        log("done")

    def close(self) -> None:
        if hasattr(self, "emulator"):
            super().close()


class WorkerEnv(PlannedEnv):
    """The same in a worker process, which ends with the reason in its log when anything fails."""

    def boot(self) -> None:
        """Answered as soon as the process runs."""
        # Ctrl+C goes to the whole process group: the parent decides what it means for workers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if hasattr(signal, "SIGUSR1"):
            file = open(_stack_file(self._plan, os.getpid()), "w")  # noqa: SIM115 - for the process's whole life
            faulthandler.enable(file)
            faulthandler.register(signal.SIGUSR1, file, all_threads=True)

    def make(self) -> None:
        with self._failure_logged():
            super().make()

    def reset(self, **arguments: Any) -> Any:
        with self._failure_logged():
            return super().reset(**arguments)

    def step(self, action: Any) -> Any:
        with self._failure_logged():
            return super().step(action)

    def end(self) -> None:
        """`close`, which Gymnasium does not let a caller wait for with a deadline."""
        self.close()

    @contextlib.contextmanager
    def _failure_logged(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            log = StartLog(self._plan.diagnostics, self._plan.index)
            log("error", error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
            raise SystemExit(1) from error


class Lost(Exception):
    """A worker failed, died or got stuck; the message names it and the last stage of its start."""


class InProcess(SyncVectorEnv):
    """One environment in this process, asked and answering like a worker."""

    def __init__(self, plan: EnvPlan) -> None:
        super().__init__([partial(PlannedEnv, plan)], copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        self._reply: Any = None
        self.call("make")

    def ask(self, method: str, *arguments: Any, **keywords: Any) -> None:
        self._reply = getattr(self, method)(*arguments, **keywords)

    def answer(self, method: str, deadline: float) -> Any:
        """The reply; None if nothing was asked."""
        reply, self._reply = self._reply, None
        return reply


class Worker(AsyncVectorEnv):
    """One environment in a process of its own; every answer has a deadline."""

    def __init__(self, plan: EnvPlan) -> None:
        self._plan = plan
        self.started = self._asked = time.monotonic()
        backend = plan.settings.backend
        super().__init__(
            [partial(WorkerEnv, plan)], shared_memory=backend.env_shared_memory, copy=False,
            context=backend.start_method(), autoreset_mode=AutoresetMode.SAME_STEP,
        )  # fmt: skip
        self.ask("call", "make")

    @property
    def process(self) -> Any:
        return self.processes[0]

    def _check_spaces(self) -> None:
        """Wait until the process runs (Gymnasium frees what it receives after this), but not without a deadline."""
        self.ask("call", "boot")
        # A process that does not come up is reported when `make` has no answer either.
        with contextlib.suppress(multiprocessing.TimeoutError, EOFError, OSError):
            self.call_wait(timeout=self._plan.settings.backend.reset_timeout_s(1))

    def ask(self, method: str, *arguments: Any, **keywords: Any) -> None:
        """Send a request. A worker that can't take it is found out when its answer is awaited."""
        self._asked = time.monotonic()
        with contextlib.suppress(OSError, AlreadyPendingCallError):
            getattr(self, f"{method}_async")(*arguments, **keywords)

    def answer(self, method: str, deadline: float) -> Any:
        """The reply; raises Lost if the worker dies, fails or gives none before the deadline."""
        try:
            return getattr(self, f"{method}_wait")(timeout=max(0.0, deadline - time.monotonic()))
        except multiprocessing.TimeoutError:
            what = f"is stuck: no answer for {time.monotonic() - self._asked:.1f} s"
            raise Lost(self._describe(what) + self._stack()) from None
        except (EOFError, OSError, AlreadyPendingCallError, NoAsyncCallError):
            self.process.join(CLOSE_TIMEOUT_S)
            code = self.process.exitcode
            how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit status {code}"
            raise Lost(self._describe(f"died ({how})")) from None

    def kill(self) -> None:
        self.process.kill()
        self.process.join(CLOSE_TIMEOUT_S)
        self.parent_pipes[0].close()
        self.closed = True

    def _describe(self, what: str) -> str:
        log = read_start_log(self._plan.diagnostics, self._plan.index, self.process.pid)
        if log and "error" in log[-1]:
            what = f"failed: {log[-1]['error']}"
        stages = ["none", *(line["mark"] for line in log if line["mark"] in STAGES)]
        return f"worker {self._plan.index} (pid {self.process.pid}) {what}; last stage mark: {stages[-1]}"

    def _stack(self) -> str:
        """State and stack of a stuck process. It writes the stack itself, unless the kernel has stopped it."""
        pid, path = self.process.pid, _stack_file(self._plan, self.process.pid)
        try:
            state = _state(pid)
            if state != "stopped" and path.exists():
                os.kill(pid, signal.SIGUSR1)
                deadline = time.monotonic() + _STACK_TIMEOUT_S
                while time.monotonic() < deadline and not path.stat().st_size:
                    time.sleep(0.02)
        except ProcessLookupError:
            return ""
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        return "".join(f"\n  {line}" for line in [f"state: {state}", *lines[:_STACK_LINES]])


def _state(pid: int) -> str:
    """What the kernel says of a process, such as "sleeping"; "unknown" where there is no /proc."""
    if not Path("/proc/self/status").exists():
        return "unknown"
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    return next(line for line in lines if line.startswith("State:")).partition("(")[2].rstrip(")")


def _stack_file(plan: EnvPlan, pid: int) -> Path:
    """Where a worker writes its stacks when it is sent SIGUSR1."""
    return plan.diagnostics / f"worker_{plan.index:03d}_pid{pid}.stack"


# ---- the log of a start: JSON lines, so that one that failed shows how far it came ----


def diagnostics_folder(wanted: str = "") -> Path:
    """The folder for start logs: `wanted`, or a new one in the temporary folder."""
    if not wanted:
        return Path(tempfile.mkdtemp(prefix=f"mario_env_diag_{os.getpid()}_{int(time.time())}_"))
    folder = Path(wanted).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class StartLog:
    """Appends to the log of one environment; each line is on disk before the next stage begins."""

    def __init__(self, folder: Path, index: int) -> None:
        self.path = folder / f"worker_{index:03d}_pid{os.getpid()}.jsonl"
        self._index = index
        self._began = time.monotonic()

    def __call__(self, stage: str, **details: Any) -> None:
        line = {
            "time": time.time(),
            "worker": self._index,
            "pid": os.getpid(),
            "mark": stage,
            "since_start_s": round(time.monotonic() - self._began, 4),
            **details,
        }
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_start_log(folder: Path, index: int, pid: int | None = None) -> list[dict[str, Any]]:
    """The lines of an environment, or of one of its processes, in order; an incomplete line is left out."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"worker_{index:03d}_pid{pid if pid is not None else '*'}.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    return found
