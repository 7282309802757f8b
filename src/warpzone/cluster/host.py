"""An environment host: the emulators of some columns of the rollout, on a machine of their own.

A host only emulates. It sends the newest frame and the telemetry of every decision; stacks, rewards and everything that
is learned are made where they are used. Nothing here needs Ray or torch.
"""

from __future__ import annotations

import hashlib
import math
import platform
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import warpzone
from warpzone.cluster.reply import Ended, Reply, TelemetryPacker
from warpzone.engine import FIELDS, FramePacker, Machine, Packer, Pool
from warpzone.engine.rom import identify
from warpzone.engine.rom import rom as find_rom
from warpzone.envs.config import ViewConfig
from warpzone.envs.stages import parse_stage

SAME_STEP = 1
"""The engine's number for episodes that begin in the step in which the last one ended."""
RIGHT_B_A = 0b10000011
PROBE_FRAMES = 240
Later = tuple[str, tuple[Any, ...]]
"""A call of the engine that is due before the next step: `set_stage_weights` or `queue_start`."""


@dataclass(frozen=True)
class HostSettings:
    """What a host emulates: one vector of environments for each view, each on all its threads."""

    views: tuple[ViewConfig, ...]
    num_envs: int
    """Environments in each vector."""
    stages: tuple[str, ...]
    threads: int
    rom: str = ""
    """Path of the ROM on the host; by default found as everywhere. The ROM itself is never sent."""


class Host:
    """The environments of one host. The next group is emulated while the reply of the last one is sent."""

    def __init__(self, settings: HostSettings) -> None:
        image = find_rom(settings.rom or None)
        # Two groups at once would have the cores in turn, and both be late.
        turn = threading.Lock()
        self.groups = [_Group(image, settings, view, turn) for view in settings.views]

    def ready(self) -> str:
        """The name of the machine, once the environments are made."""
        return platform.node()

    def reset(self, group: int, seeds: NDArray[np.uint64], weights: Sequence[float] | None) -> bytes:
        """Begin all episodes of a group."""
        later: list[Later] = [] if weights is None else [("set_stage_weights", (list(weights),))]
        return self.groups[group].run("reset", later, None, seeds, None)

    def step(self, group: int, actions: bytes, later: Sequence[Later] | None) -> bytes:
        """One decision in every environment of a group: an action is a byte."""
        return self.groups[group].run("step", later or (), np.frombuffer(actions, np.uint8).astype(np.int64))

    def snapshots(self, group: int) -> list[bytes]:
        """Every environment of a group in mid-episode."""
        pool = self.groups[group].pool
        return [pool.snapshot(i, 1) for i in range(self.groups[group].num_envs)]

    def restore(self, group: int, blobs: Sequence[bytes]) -> bytes:
        """Return to what `snapshots` gave."""
        one = self.groups[group]
        for index, blob in enumerate(blobs):
            one.pool.restore(index, blob)
        nobody = np.zeros(one.num_envs, np.bool_)
        return one.run("reset", [], nobody, None, None)


class _Group:
    """A vector of environments of the engine, with the memory of its last results."""

    def __init__(self, image: bytes, settings: HostSettings, view: ViewConfig, turn: threading.Lock) -> None:
        view, self.num_envs, self.turn = replace(view, frame_stack=1), settings.num_envs, turn
        dump = identify(image)
        lost_levels = bool(dump and dump.lost_levels)
        # Several hosts may share a machine: pinned threads would all sit on its first cores.
        pool = view.pool_settings
        pool.update({
            "environments": self.num_envs, "threads": settings.threads, "autoreset": SAME_STEP, "pal": False,
            "lost_levels": lost_levels, "pin": False,
            "stages": [parse_stage(name, lost_levels=lost_levels) for name in settings.stages],
        })  # fmt: skip
        self.pool = Pool(image, **pool)
        frames, size, width = (self.num_envs, *view.shape), math.prod(view.shape), view.shape[-1]
        self.frame_packer, self.packer = FramePacker(self.num_envs, size, width), Packer(1, size, width)
        self.telemetry_packer = TelemetryPacker(self.num_envs)
        self.frames, self.last_frames = np.zeros(frames, np.uint8), np.zeros(frames, np.uint8)
        self.telemetry, self.last_telemetry = np.zeros((2, len(FIELDS), self.num_envs), np.int32)
        self.terminated, self.truncated = np.zeros((2, self.num_envs), np.bool_)

    def run(self, method: str, later: Sequence[Later], *arguments: Any) -> bytes:
        """Do what is due, call the engine, and compress what came of it: a Reply as bytes."""
        with self.turn:
            began = time.perf_counter()
            for name, given in later:
                getattr(self.pool, name)(*given)
            getattr(self.pool, method)(
                *arguments, self.frames, self.telemetry, self.terminated, self.truncated, self.last_frames,
                self.last_telemetry, self.frame_packer,
            )  # fmt: skip
            seconds = time.perf_counter() - began
        # The next group has its turn. This one has one call at a time, so its arrays are as they were.
        rows, ended = np.flatnonzero(self.terminated | self.truncated), None
        if method == "step" and len(rows):
            ended = Ended(rows, self.packer.pack(self.last_frames[rows]), self.last_telemetry[:, rows])
        frames, telemetry = self.frame_packer.packed(), self.telemetry_packer.pack(self.telemetry)
        return Reply(frames, telemetry, self.terminated, self.truncated, ended, seconds).to_bytes()


def identity(rom: str = "") -> dict[str, str]:
    """What must be equal wherever parts of a run are: versions, the ROM, and how the engine plays it."""
    image = find_rom(rom or None)
    machine = Machine(image)
    # Builds differ in their bytes; that they emulate the same is what counts.
    machine.step(RIGHT_B_A, frames=PROBE_FRAMES)
    played = hashlib.sha256(machine.ram.tobytes() + machine.screen.tobytes()).hexdigest()
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "warpzone": warpzone.__version__,
        "rom": hashlib.sha256(image).hexdigest()[:16],
        "engine": played[:16],
    }
