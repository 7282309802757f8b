"""Collectors in the caller's thread: serial with one group of environments, double-buffered with two or more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from warpzone.collect.env_group import EnvGroup, Listeners
from warpzone.collect.interfaces import Actor, Environments
from warpzone.learn.rollout import Rollout, allocate_rollout
from warpzone.model.snapshot import Snapshot


class Collector:
    """Fills one rollout after another, each continuing where the last one ended.

    With one group of environments, acting and emulation take turns. With more, the policy acts for one while the
    others are emulated. `collect` returns its two buffers in turn: a rollout is overwritten by the next call but one.
    """

    def __init__(
        self,
        envs: Sequence[Environments],
        actor: Actor,
        snapshot: Callable[[], Snapshot],
        *,
        steps: int,
        stack: int = 4,
        device: torch.device | str = "cpu",
        seed: int = 0,
    ) -> None:
        self.envs = envs
        self.actor = actor
        self.snapshot = snapshot
        self.steps = steps
        self.stack = stack
        self.device = torch.device(device)
        self.seed = seed
        self.num_envs = sum(part.num_envs for part in envs)
        self.version = -1
        self.rollout_time = 0.0
        """Seconds the last rollout took to collect."""
        self.groups: list[EnvGroup] = []
        self.buffers: list[Rollout] = []
        self.turn = 0
        self.stopping = False

    def start(self, listeners: Listeners | None = None) -> None:
        """Reset the environments. `listeners` are told what happens from then on."""
        for index, envs in enumerate(self.envs):
            first_column = sum(group.envs.num_envs for group in self.groups)
            seed, told = group_seed(self.seed, index), listeners or Listeners()
            self.groups.append(
                EnvGroup(envs, first_column, self.actor, self.stack, self.steps, self.device, seed, told)
            )
        state0 = self.actor.initial_state(self.num_envs, self.device)
        shape = self.groups[0].frame_shape
        self.buffers = [
            allocate_rollout(self.steps, self.num_envs, shape, self.stack, state0, self.device)
            for _ in range(2)
        ]

    def collect(self) -> Rollout:
        """The next rollout, by the newest weights."""
        rollout = self.buffers[self.turn]
        self.turn = 1 - self.turn
        self.fill(rollout)
        return rollout

    @torch.no_grad()
    def fill(self, rollout: Rollout) -> bool:
        """Collect into `rollout`; false if `stop` was called meanwhile."""
        started = time.perf_counter()
        snapshot = self.snapshot()
        if snapshot.version != self.version:
            self.actor.install(snapshot)
            self.version = snapshot.version
        rollout.finals.clear()
        for group in self.groups:
            group.begin(rollout, self.version)
            group.decide(0)
            group.send()
        # While one group acts, the environments of the others are being emulated.
        alone = len(self.groups) == 1
        for t in range(self.steps):
            if self.stopping:  # finish the steps under way, so that the caller can close the environments
                for group in self.groups:
                    group.tell()
                    group.receive(t)
                    group.tell()
                return False
            for number, group in enumerate(self.groups):
                group.receive(t)
                if t + 1 < self.steps:
                    group.decide(t + 1)
                if not alone:
                    self.groups[number - 1].tell()  # while a GPU decides
                if t + 1 < self.steps:
                    group.send()
                if alone:
                    group.tell()
        self.groups[-1].tell()
        for group in self.groups:
            group.finish()
        if self.device.type == "cuda":
            # The staging memory on the host is about to be overwritten.
            torch.cuda.current_stream(self.device).synchronize()
        self.rollout_time = time.perf_counter() - started
        return True

    def stop(self) -> None:
        """Make a `fill` in another thread return soon."""
        self.stopping = True

    def close(self) -> None:
        """Nothing to release: the environments belong to the caller."""

    def state_dict(self) -> dict[str, Any]:
        """The state of every group; the environments keep their own."""
        return {"groups": [group.state_dict() for group in self.groups], "turn": self.turn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # Older checkpoints call groups lanes.
        saved_groups = state["groups"] if "groups" in state else state["lanes"]
        for group, saved in zip(self.groups, saved_groups, strict=True):
            group.load_state_dict(saved)
        self.turn = state["turn"]


def group_seed(seed: int, index: int) -> int:
    """The seed of a group's actions: no two groups of any two runs share one, and the first has the run's own."""
    if index == 0:
        return seed
    return int(np.random.SeedSequence([seed % 2**64, index]).generate_state(1, np.uint64)[0])
