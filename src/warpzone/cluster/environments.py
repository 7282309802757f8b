"""Environments that run on hosts. To a collector they are like those of this process, and give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.cluster.fleet import Fleet
from warpzone.cluster.host import Later
from warpzone.cluster.reply import Reply, TelemetryPacker
from warpzone.engine import FIELDS, Packer
from warpzone.envs.pool_envs import Empty, StepMemory
from warpzone.envs.rewards import TERMS, RewardShaper
from warpzone.envs.telemetry import named_info
from warpzone.errors import CheckpointError

Info = dict[str, Any]
Result = tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]


class HostEnvironments:
    """One group of environments of every host of a fleet, as one vector. A thread of its own calls the hosts, waits for
    their replies and unpacks them, while the policy acts for another group.

    Episodes of a host that was lost end as truncated where they were seen last, without a reward;
    `info["worker_lost"]` marks them, and nobody counts them.
    """

    has_snapshots = True

    def __init__(
        self, fleet: Fleet, group: int, rewards: RewardShaper, threads: int, empty: Empty = np.empty
    ) -> None:
        """`threads` unpack frames."""
        settings = fleet.settings
        self.fleet, self.group, self.rewards = fleet, group, rewards
        self.each = settings.num_envs
        self.num_envs = self.each * len(fleet.slots)
        channels = len(settings.views[group].channels)
        self.frame_shape = (channels, *settings.views[group].size)
        self.packer = Packer(threads, math.prod(self.frame_shape), self.frame_shape[-1])
        self.telemetry_packer = TelemetryPacker(self.each)
        self._empty = empty
        self._spare: list[StepMemory] = []
        self._now = self._next_memory()
        self._later: list[list[Later]] = [[] for _ in fleet.slots]
        self.weights: list[float] | None = None
        self._caller = ThreadPoolExecutor(1, f"caller-{group}")
        self._received: Future[Result] | None = None

    # ---- stepping ----

    def reset(self) -> tuple[NDArray[np.uint8], Info]:
        """Begin all episodes."""
        memory = self._next_memory()
        for rows, reply in zip(self._rows(), self.fleet.begin(self.group), strict=True):
            self._unpack(reply, rows, memory)
        self._turn_to(memory)
        info = named_info(memory.fields)
        info["reward_terms"] = dict.fromkeys(TERMS, np.zeros(self.num_envs, np.float32))
        info["dx"] = np.zeros(self.num_envs, np.int32)
        return memory.observations, info

    def send(self, actions: NDArray[np.int64]) -> None:
        """Start a step and return at once."""
        chosen = [actions[rows].astype(np.uint8).tobytes() for rows in self._rows()]
        later, self._later = self._later, [[] for _ in self.fleet.slots]
        self._received = self._caller.submit(self._step, chosen, later)

    def recv(self) -> Result:
        """Wait for the step that `send` started; a host that is lost meanwhile is replaced."""
        assert self._received is not None
        received, self._received = self._received, None
        result = received.result()
        for host, rows in enumerate(self._rows()):
            if result[4]["worker_lost"][rows.start]:
                # Starts that were due there went with the host.
                self._later[host] = [due for due in self._later[host] if due[0] != "queue_start"]
        return result

    def _step(self, chosen: Sequence[bytes], later: Sequence[list[Later]]) -> Result:
        self.fleet.send(self.group, chosen, later)
        before, memory = self._now, self._next_memory()
        lost = np.zeros(self.num_envs, np.bool_)
        last_frames, ended = before.observations, before.telemetry
        replies = self.fleet.receive(self.group)
        is_over = [is_new or reply.ended is not None for reply, is_new in replies]
        if any(is_over):
            last_frames, ended = np.empty_like(before.observations), np.empty_like(before.telemetry)
        for rows, (reply, is_new) in zip(self._rows(), replies, strict=True):
            self._unpack(reply, rows, memory)
            if is_new:
                lost[rows], memory.terminated[rows], memory.truncated[rows] = True, False, True
            if any(is_over):
                ended[:, rows] = before.telemetry[:, rows] if is_new else memory.telemetry[:, rows]
                if is_new:
                    last_frames[rows] = before.observations[rows]
            if reply.ended is not None:
                at = rows.start + reply.ended.rows
                frames = np.empty((len(at), *self.frame_shape), np.uint8)
                self.packer.unpack(reply.ended.frames, frames)
                last_frames[at], ended[:, at] = frames, reply.ended.telemetry
        self._turn_to(memory)
        after = ended if any(is_over) else memory.telemetry
        self.rewards.of_telemetry(before.telemetry, after, lost, memory.rewards)
        info = named_info(memory.fields)
        info["reward_terms"] = dict(memory.rewards.terms)
        info["dx"] = memory.rewards.dx
        info["worker_lost"] = lost
        if any(is_over):
            info["final_obs"] = last_frames
            info["final_info"] = named_info(dict(zip(FIELDS, ended, strict=True)))
            info["_final_obs"] = info["_final_info"] = memory.terminated | memory.truncated
        return memory.observations, memory.rewards.total, memory.terminated, memory.truncated, info

    # ---- what the loop asks for beside ----

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each stage is sampled for the episodes that begin from the next step on."""
        self.weights = [float(w) for w in weights]
        for due in self._later:
            due.append(("set_stage_weights", (self.weights,)))

    def queue_start(self, index: int, blob: bytes) -> None:
        """Begin the next episode of an environment from a snapshot."""
        self._later[index // self.each].append(("queue_start", (index % self.each, bytes(blob))))

    def state_dict(self) -> dict[str, Any]:
        """The same as of environments in this process: either can resume from the other's."""
        parts = self.fleet.call("snapshots", [(self.group,) for _ in self.fleet.slots])
        return {
            "consoles": [blob for part in parts for blob in part],
            "rewards": self.rewards.state_dict(),
            "fresh": np.zeros(self.num_envs, np.bool_),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        blobs = state["consoles"]
        if len(blobs) != self.num_envs:
            raise CheckpointError(f"the saved state is of {len(blobs)} environments, not {self.num_envs}")
        memory = self._next_memory()
        replies = self.fleet.restore(self.group, [blobs[rows] for rows in self._rows()])
        for rows, reply in zip(self._rows(), replies, strict=True):
            self._unpack(reply, rows, memory)
        self._turn_to(memory)
        self.rewards.load_state_dict(state["rewards"])

    def metrics(self) -> dict[str, Any]:
        """Numbers of the hosts; all groups share them."""
        return self.fleet.metrics() if self.group == 0 else {}

    def close(self) -> None:
        """Let the hosts go."""
        self.fleet.close()
        self._caller.shutdown(wait=False)

    # ---- inside ----

    def _rows(self) -> list[slice]:
        return [slice(at, at + self.each) for at in range(0, self.num_envs, self.each)]

    def _unpack(self, reply: Reply, rows: slice, memory: StepMemory) -> None:
        self.packer.unpack(reply.frames, memory.observations[rows])
        memory.telemetry[:, rows] = self.telemetry_packer.unpack(reply.telemetry)
        memory.terminated[rows], memory.truncated[rows] = reply.terminated, reply.truncated

    def _next_memory(self) -> StepMemory:
        """Memory for the next results: some that nobody holds any more, or new."""
        for i, memory in enumerate(self._spare):
            if not memory.held_elsewhere():
                return self._spare.pop(i)
        del self._spare[:-2]
        return StepMemory(self.num_envs, self.frame_shape, self._empty)

    def _turn_to(self, memory: StepMemory) -> None:
        self._spare.append(self._now)
        self._now = memory
