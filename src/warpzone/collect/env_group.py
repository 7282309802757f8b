"""A group: one vector of environments and the columns of every rollout that it fills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.collect.episodes import EpisodeLog
from warpzone.collect.interfaces import Actor, Environments, Info, OnEpisodes, OnStep, StepResult
from warpzone.envs.telemetry import ENDS
from warpzone.learn.random_state import restore_stream
from warpzone.learn.rollout import Final, Rollout
from warpzone.watch.profile import phase

STALLED = ENDS.index("stalled")


@dataclass(frozen=True)
class Listeners:
    """Callbacks during collection, on the thread that collects."""

    on_episodes: OnEpisodes | None = None
    """Called with the records of the episodes that a step finished."""
    on_step: OnStep | None = None
    """Called after every step with the group's columns and the environments' info, during a step."""


class EnvGroup:
    """Acts for its environments and writes what happens into `rollout`, one column per environment.

    `age` (steps since each episode began) is kept on the host and sent along with the frames: it tells the
    device where stacks and memories start anew.
    """

    def __init__(
        self, envs: Environments, first_column: int, actor: Actor, stack: int, steps: int, device: torch.device,
        seed: int, listeners: Listeners,
    ) -> None:  # fmt: skip
        n = envs.num_envs
        self.envs = envs
        self.actor = actor
        self.columns = slice(first_column, first_column + n)
        self.stack = stack
        self.device = device
        self.listeners = listeners
        self.generator = torch.Generator(device).manual_seed(seed)
        self.state = actor.initial_state(n, device)
        observations, info = envs.reset()
        self.episodes = EpisodeLog(n, info, first_column)
        self.frame_shape: tuple[int, int, int] = observations.shape[1:]
        self.recent = torch.zeros(stack, n, *self.frame_shape, dtype=torch.uint8, device=device)
        # Staging memory; pinned, so that copies to a GPU run beside its work.
        self.age = self._host(steps + 1, n, dtype=torch.int64)
        self.stage = self._host(steps + 1, n, dtype=torch.int64)
        self.rewards = self._host(steps, n, dtype=torch.float32)
        self.terminated = self._host(steps, n, dtype=torch.bool)
        self.truncated = self._host(steps, n, dtype=torch.bool)
        self.stalled = self._host(steps, n, dtype=torch.bool)
        self._keep(steps, info)
        self.recent[-1].copy_(torch.from_numpy(observations))
        self.outcome: StepResult | None = None

    def begin(self, rollout: Rollout, version: int) -> None:
        """Continue in a new rollout where the last one ended."""
        self.rollout = rollout
        columns = self.columns
        rollout.frames[: self.stack, columns] = self.recent
        for mine, whole in zip(self.state, rollout.state0, strict=True):
            whole[columns] = mine
        rollout.version[:, columns] = version
        rollout.truncation_value[:, columns] = 0
        for kept in (self.age, self.stage):
            kept[0] = kept[-1]
        self._upload_context(0)

    def decide(self, t: int) -> None:
        """Choose the actions of step t; a GPU may still be at it when this returns."""
        rollout, columns = self.rollout, self.columns
        with phase("inference"):
            logits, values, self.state = self._decide(t)
            logp = logits.log_softmax(-1)
            # The argmax of p / exponential noise is a sample of p.
            noise = torch.empty_like(logp).exponential_(generator=self.generator)
            actions = (logp - noise.log()).argmax(-1)
            rollout.actions[t, columns] = actions
            rollout.logp[t, columns] = logp.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
            rollout.values[t, columns] = values
            self.actions = actions

    def send(self) -> None:
        """Send the actions to the environments."""
        with phase("sending"):
            # This waits for the device, and so for the copy of the frames: their memory is free again.
            self.envs.send(self.actions.cpu().numpy())

    def receive(self, t: int) -> None:
        """Wait for the outcome of step t and keep it."""
        with phase("emulation"):
            self.outcome = observations, rewards, terminated, truncated, info = self.envs.recv()
        with phase("transfer"):
            self.rewards[t] = torch.from_numpy(rewards)
            self.terminated[t] = torch.from_numpy(terminated)
            self.truncated[t] = torch.from_numpy(truncated)
            self.stalled[t] = False
            if truncated.any():
                self._value_truncated(t, np.flatnonzero(truncated & ~terminated), info)
            frames = torch.from_numpy(observations)
            self.rollout.frames[self.stack + t, self.columns].copy_(frames, non_blocking=True)
            torch.add(self.age[t], 1, out=self.age[t + 1])
            self.age[t + 1][self.terminated[t] | self.truncated[t]] = 0
            self._keep(t + 1, info)
            self._upload_context(t + 1)

    def tell(self) -> None:
        """Call the listeners with what was received last, unless that was done."""
        if self.outcome is None:
            return
        _, rewards, terminated, truncated, info = self.outcome
        self.outcome = None
        with phase("recording"):
            records = self.episodes.observe(rewards, terminated, truncated, info)
            if records and self.listeners.on_episodes is not None:
                self.listeners.on_episodes(records)
            if self.listeners.on_step is not None:
                self.listeners.on_step(self.columns, info)

    def finish(self) -> None:
        """Bootstrap after the last step and complete the rollout."""
        rollout, columns, steps = self.rollout, self.columns, self.rollout.steps
        _, rollout.bootstrap[columns], _ = self._decide(steps)
        rollout.rewards[:, columns].copy_(self.rewards, non_blocking=True)
        rollout.terminated[:, columns].copy_(self.terminated, non_blocking=True)
        rollout.truncated[:, columns].copy_(self.truncated, non_blocking=True)
        rollout.stalled[:, columns].copy_(self.stalled, non_blocking=True)
        self.recent.copy_(rollout.frames[steps:, columns])

    def state_dict(self) -> dict[str, Any]:
        """What the next rollout continues from, between two rollouts."""
        return {
            "generator": self.generator.get_state(),
            "recent": self.recent,
            "state": list(self.state),
            "age": self.age[-1],
            "stage": self.stage[-1],
            "episodes": self.episodes.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        restore_stream(self.generator, saved["generator"])
        self.recent.copy_(saved["recent"])
        self.state = tuple(part.to(self.device) for part in saved["state"])
        for kept, value in ((self.age, "age"), (self.stage, "stage")):
            kept[-1] = saved[value]
        self.episodes.load_state_dict(saved["episodes"])

    def _decide(self, t: int) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        rollout, columns = self.rollout, self.columns
        return self.actor.act(
            rollout.stacks_at(t, columns),
            self.state,
            rollout.age[t, columns] == 0,
            stage=rollout.stage_ahead[t, columns],
        )

    def _value_truncated(self, t: int, truncated: NDArray[np.int64], info: Info) -> None:
        """The value of the observations at which episodes were truncated: the return they could still have had."""
        if not len(truncated):
            return
        if "end" in info.get("final_info", {}):
            self.stalled[t, truncated] = torch.from_numpy(info["final_info"]["end"][truncated] == STALLED)
        rollout = self.rollout
        rows = torch.from_numpy(truncated).to(self.device)
        envs = rows + self.columns.start
        channels = self.frame_shape[0]
        final = torch.from_numpy(np.ascontiguousarray(info["final_obs"][truncated])).to(self.device)
        steps = torch.full_like(envs, t)
        obs = torch.cat([rollout.stacks(steps, envs)[:, channels:], final], dim=1)
        state = tuple(part[rows] for part in self.state)
        starts = torch.zeros_like(rows, dtype=torch.bool)
        _, values, _ = self.actor.act(obs, state, starts, stage=rollout.stage_ahead[t, envs])
        rollout.truncation_value[t, envs] = values
        rollout.finals.append(Final(steps, envs, obs, state))

    def _keep(self, t: int, info: Info) -> None:
        self.stage[t] = torch.as_tensor(info["stage_index"])

    def _upload_context(self, t: int) -> None:
        rollout, columns = self.rollout, self.columns
        rollout.age[t, columns].copy_(self.age[t], non_blocking=True)
        rollout.stage_ahead[t, columns].copy_(self.stage[t], non_blocking=True)

    def _host(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, pin_memory=self.device.type == "cuda")
