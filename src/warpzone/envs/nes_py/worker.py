"""What runs in a worker process: one environment, and a pipe to whoever asks."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.nes_py.console import ConsoleFactory, timed_console
from warpzone.envs.nes_py.episode import Episodes, EpisodeSettings, Outcome
from warpzone.envs.nes_py.marks import MarkWriter


@dataclass(frozen=True)
class WorkerPlan:
    """All a worker is told; sent to its process."""

    index: int
    factory: ConsoleFactory
    settings: EpisodeSettings
    diagnostics: Path
    pictures: Any | None = None
    """Shared memory for the observation and the final one, or none to send them through the pipe."""


def picture_memory(pictures: Any, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Shared memory as two observations: now, and the end of the last episode."""
    return np.frombuffer(pictures, np.uint8).reshape(2, *shape)


def stack_file(diagnostics: Path, index: int, pid: int) -> Path:
    """Where a worker writes its stacks when it is sent SIGUSR1."""
    return diagnostics / f"worker_{index:03d}_pid{pid}.stack"


def work(plan: WorkerPlan, pipe: Connection) -> None:
    """Make the environment, then serve requests until told to close or left alone."""
    # Ctrl+C goes to the whole group: whoever owns the workers decides what it means for them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    mark = MarkWriter(plan.diagnostics, plan.index)
    with contextlib.ExitStack() as stack:
        if hasattr(signal, "SIGUSR1"):
            pid = int(mark.path.stem.rpartition("pid")[2])
            file = stack.enter_context(open(stack_file(plan.diagnostics, plan.index, pid), "w"))
            faulthandler.enable(file)
            faulthandler.register(signal.SIGUSR1, file, all_threads=True)
        try:
            console, took_s = timed_console(plan.factory, mark)
            episodes = Episodes(console, plan.settings)
            pipe.send(("ready", took_s))
            _serve(plan, episodes, pipe)
            console.close()
        except (EOFError, BrokenPipeError):
            pass
        except BaseException as error:
            mark("error", error=repr(error), traceback=traceback.format_exc())
            with contextlib.suppress(OSError):
                pipe.send(("error", f"{type(error).__name__}: {error}"))


def _serve(plan: WorkerPlan, episodes: Episodes, pipe: Connection) -> None:
    memory = picture_memory(plan.pictures, plan.settings.view.shape) if plan.pictures is not None else None
    while True:
        request, argument = pipe.recv()
        if request == "step":
            pipe.send(("outcome", _through(memory, episodes.step(argument))))
        elif request == "reset":
            pipe.send(("outcome", _through(memory, episodes.reset(argument))))
        elif request == "weights":
            episodes.set_stage_weights(argument)
        elif request == "screen":
            pipe.send(("screen", episodes.console.screen.copy()))
        elif request == "close":
            return


def _through(memory: NDArray[np.uint8] | None, outcome: Outcome) -> Outcome:
    """Put the pictures into shared memory where there is some."""
    if memory is not None:
        memory[0] = outcome.observation
        outcome.observation = memory[0, :0]
        if outcome.final_observation is not None:
            memory[1] = outcome.final_observation
            outcome.final_observation = memory[1, :0]
    return outcome
