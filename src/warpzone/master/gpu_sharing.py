"""NVIDIA's Multi-Process Service (MPS): processes use one GPU at the same time; without it they take turns.

By https://docs.nvidia.com/deploy/mps and `man nvidia-cuda-mps-control`, `-f` keeps the daemon in the foreground. It
starts a server for the first process that uses CUDA. A process that finds no daemon runs without MPS, so only the list
of servers shows that MPS is used. `quit` ends the daemon and its servers: on an H200 both were gone within seconds,
even when the master had been killed. We found no word on what a signal does to either, so none is relied on; and `-t`,
the seconds that processes which still use a server are given, was never put to the test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from warpzone.master.children import GRACE_S, die_with_parent
from warpzone.master.plan import MasterConfig, Plan

PROGRAM = "nvidia-cuda-mps-control"
PIPES, LOGS, GPUS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY", "CUDA_VISIBLE_DEVICES"
DEFAULT_PIPES = "/tmp/nvidia-mps"
START_S, ASK_S, CHECK_S, QUIT_S = 5.0, 10.0, 60.0, 10.0
CHECK = "import torch; torch.zeros(1, device='cuda')"
KEEPER = f"""
mkdir "$0/pipes" "$0/logs"
{PROGRAM} -f &
read -r _
echo quit -t {GRACE_S:.0f} | timeout {2 * GRACE_S:.0f} {PROGRAM} || kill -9 $!
rm -rf "$0"
"""
"""A shell that ends the daemon when its own input does: when the master closes it or is gone, even killed. Runs whose
master was killed still save on the GPU: they should have as long as those that are told to stop."""


@contextmanager
def shared_gpu(config: MasterConfig, plan: Plan, say: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """The variables by which children find MPS, which is started unless somebody has; none if it can't be used."""
    if plan.preset != "gpu" or plan.parallel < 2 or config.cluster or shutil.which(PROGRAM) is None:
        yield {}
    elif _servers({}) is not None:
        yield {PIPES: os.environ.get(PIPES, DEFAULT_PIPES)}
    elif PIPES in os.environ:
        yield {}
    else:
        with ExitStack() as stack:
            try:
                variables = stack.enter_context(_daemon())
                why = _why_not(variables)
            except OSError as error:
                variables, why = {}, str(error)
            if why:
                say(f"[master] no MPS, so runs take turns on the GPU: {why}")
                stack.close()
            yield {} if why else variables


@contextmanager
def _daemon() -> Iterator[dict[str, str]]:
    folder = tempfile.mkdtemp(prefix="mps-")  # the paths of sockets must be short
    variables = {PIPES: f"{folder}/pipes", LOGS: f"{folder}/logs"}
    keeper = subprocess.Popen(
        ["sh", "-c", KEEPER, folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **variables},
    )  # fmt: skip
    gpus = os.environ.get(GPUS)
    try:  # the server numbers the GPUs that it sees from 0
        yield {**variables, GPUS: ",".join(map(str, range(gpus.count(",") + 1)))} if gpus else variables
    finally:
        with suppress(subprocess.TimeoutExpired):
            keeper.communicate(timeout=QUIT_S)


def _servers(variables: Mapping[str, str]) -> str | None:
    """The process ids of the daemon's servers; None if no daemon answers."""
    try:
        asked = subprocess.run(
            [PROGRAM], input="get_server_list\n", env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=ASK_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if asked.returncode else asked.stdout.strip()


def _why_not(variables: Mapping[str, str]) -> str:
    """Why a process could not use the GPU by MPS; empty if it can."""
    deadline = time.monotonic() + START_S
    while _servers(variables) is None:
        if time.monotonic() > deadline:
            return "its daemon does not answer"
        time.sleep(0.05)
    try:
        check = subprocess.run(
            [sys.executable, "-c", CHECK], env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=CHECK_S, check=False, start_new_session=True, preexec_fn=die_with_parent(signal.SIGKILL),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"CUDA did not start in {CHECK_S:.0f} s"
    if check.returncode:
        return (check.stderr.strip().splitlines() or ["CUDA did not start"])[-1]
    return "" if _servers(variables) else "no server was started"
