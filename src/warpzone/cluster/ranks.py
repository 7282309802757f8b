"""Starts the learners of a run that has several: beside this process (`--gpus N`), or as torchrun did."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import torch

from warpzone.cluster.build import host_environments
from warpzone.cluster.connection import check_nodes, connected
from warpzone.envs.config import cores
from warpzone.errors import ConfigError
from warpzone.learn.ranks import Ranks, joined
from warpzone.master.children import die_with_parent
from warpzone.run import loop
from warpzone.run.build import Placement, build_envs
from warpzone.run.config import TrainConfig
from warpzone.run.device import resolve_device
from warpzone.run.following import follow
from warpzone.run.log import Display
from warpzone.run.loop import Outcome

END_S = 30.0
"""How long the other learners may take to end after the run."""


def under_torchrun(environ: Mapping[str, str] = os.environ) -> bool:
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(environ)


def learners(config: TrainConfig, environ: Mapping[str, str] = os.environ) -> int:
    """How many learners the run has; a ConfigError if there are fewer GPUs."""
    if under_torchrun(environ):
        started = int(environ["WORLD_SIZE"])
        if config.scale.gpus not in (1, started):
            raise ConfigError(f"torchrun started {started} processes: leave --gpus {config.scale.gpus} out.")
        return started
    gpus = config.scale.gpus
    if gpus > 1 and config.run.device != "cpu" and gpus > torch.cuda.device_count():
        raise ConfigError(
            f"--gpus {gpus} asks for more GPUs than there are ({torch.cuda.device_count()}): use fewer, or "
            "--device cpu for processes on the CPU."
        )
    return gpus


def train_together(config: TrainConfig, display: Display, size: int) -> Outcome:
    """Train with several learners. Rank 0 gives the outcome; the other ranks of torchrun exit when it is over."""
    config = replace(config, scale=replace(config.scale, gpus=size)).resolved()
    config.check()
    if under_torchrun():
        rank = int(os.environ["RANK"])
        if rank:
            _follow(config, rank, int(os.environ.get("LOCAL_RANK", rank)), "env://")
            raise SystemExit(0)
        return _lead(config, display, "env://")
    store = f"tcp://127.0.0.1:{_free_port()}"
    with _others(config, store):
        return _lead(config, display, store)


def _lead(config: TrainConfig, display: Display, store: str) -> Outcome:
    device = _device(config, 0, display)
    config = replace(config, run=replace(config.run, device=str(device)))
    with joined(0, config.scale.gpus, device, store) as ranks, placed(config, ranks) as placement:
        return loop.train(config, display, placement)


def _follow(config: TrainConfig, rank: int, local_rank: int, store: str) -> None:
    # Rank 0 decides when the run is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    device = _device(config, local_rank, None)
    with joined(rank, config.scale.gpus, device, store) as ranks, placed(config, ranks) as placement:
        follow(config, device, placement, lambda line: None)


@contextmanager
def placed(config: TrainConfig, ranks: Ranks) -> Iterator[Placement]:
    """The environments of a learner: in its process, or on hosts of its own."""
    if not config.scale.on_cluster:
        yield Placement(build_envs, ranks)
        return
    local_cpus = max(cores(), config.scale.env_hosts * (config.stage.env_threads or 1))
    with connected(config.scale.cluster, local_cpus) as cluster:
        check_nodes(cluster, config.stage.rom)
        yield Placement(partial(host_environments, cluster), ranks)


@contextmanager
def _others(config: TrainConfig, store: str) -> Iterator[None]:
    """The learners beside this one, as processes that never outlive it."""
    with ExitStack() as stack:
        for rank in range(1, config.scale.gpus):
            process = subprocess.Popen(
                [sys.executable, "-m", "warpzone.cluster.ranks"], stdin=subprocess.PIPE, start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )  # fmt: skip
            stack.callback(_end, process)
            assert process.stdin is not None
            process.stdin.write(pickle.dumps((config, rank, store)))
            process.stdin.close()
        yield


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        # After an error of this process nobody tells them to end.
        process.wait(END_S if sys.exc_info()[0] is None else 0.5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _device(config: TrainConfig, local_rank: int, display: Display | None) -> torch.device:
    device = resolve_device(config, display.say if display else lambda line: None)
    return torch.device("cuda", local_rank) if device.type == "cuda" else device


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    given, own_rank, meeting = pickle.load(sys.stdin.buffer)
    _follow(given, own_rank, own_rank, meeting)
