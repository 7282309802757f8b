"""Rollout: T steps of N environments on the learner's device, every frame stored once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from warpzone.model.memory import State


class Final(NamedTuple):
    """Last observations of k episodes that were truncated at the same step."""

    steps: Tensor
    """int64 [k]."""
    envs: Tensor
    """int64 [k]: columns of the rollout."""
    obs: Tensor
    """uint8 [k, stack * C, H, W]."""
    state: State
    """The memory before each."""


@dataclass
class Rollout:
    """What a collector fills and a learner reads. Tensors are time-major, [T, N] unless said otherwise.

    `frames[stack - 1 + t]` is the newest frame of step t; the last one belongs to the step after the
    rollout, and the first `stack - 1` to the rollout before, so that early steps can be stacked too.
    """

    frames: Tensor
    """uint8 [stack - 1 + T + 1, N, C, H, W]."""
    age: Tensor
    """int64 [T + 1, N]: steps since the episode began; 0 at its first observation."""
    stage_ahead: Tensor
    """int64 [T + 1, N]: the stage each observation shows, the one after the rollout included."""
    actions: Tensor
    """int64."""
    logp: Tensor
    """Log-probability of each action under the weights that chose it."""
    rewards: Tensor
    """float32, of the environment, not normalised."""
    values: Tensor
    """The acting weights' value of each observation."""
    terminated: Tensor
    """bool: the episode ended at this step, with this step's reward, for good."""
    truncated: Tensor
    """bool: the episode was truncated at this step; `truncation_value` is the return still expected."""
    truncation_value: Tensor
    """Value of the last observation of an episode truncated here, else 0."""
    stalled: Tensor
    """bool: this truncation was a stall, which the agent caused by standing still."""
    version: Tensor
    """int64: how many updates the weights had seen that chose each action."""
    bootstrap: Tensor
    """[N]: value of the observation after the last step."""
    state0: State
    """The memory before step 0; batch dimension first."""
    finals: list[Final] = field(default_factory=list)
    """The observations at which episodes were truncated."""

    @property
    def steps(self) -> int:
        return self.actions.shape[0]

    @property
    def num_envs(self) -> int:
        return self.actions.shape[1]

    @property
    def num_decisions(self) -> int:
        return self.actions.numel()

    @property
    def stack(self) -> int:
        return self.frames.shape[0] - self.steps

    @property
    def device(self) -> torch.device:
        return self.frames.device

    @property
    def starts(self) -> Tensor:
        """bool [T, N]: the observation of this step is the first of its episode."""
        return self.age[:-1] == 0

    @property
    def stage(self) -> Tensor:
        return self.stage_ahead[:-1]

    @property
    def ends(self) -> Tensor:
        """bool [T, N]: this step is the last of its episode."""
        return self.terminated | self.truncated

    def frame_index(self, steps: Tensor, envs: Tensor) -> Tensor:
        """Rows of the flattened `frames` that make up the stacks of (steps, envs), oldest first.

        A stack never reaches back past the first frame of its episode: it repeats that frame.
        """
        age = self.age[steps, envs].unsqueeze(-1)
        back = torch.arange(self.stack - 1, -1, -1, device=self.device)
        newest = (self.stack - 1 + steps).unsqueeze(-1)
        return (newest - torch.minimum(back, age)) * self.num_envs + envs.unsqueeze(-1)

    def stacked(self, index: Tensor, out: Tensor | None = None) -> Tensor:
        """Stacks [..., stack * C, H, W] by their `frame_index`; `out` is shaped [B * stack, C, H, W]."""
        rows = torch.index_select(self.frames.flatten(0, 1), 0, index.reshape(-1), out=out)
        channels, height, width = self.frames.shape[2:]
        return rows.view(*index.shape[:-1], self.stack * channels, height, width)

    def stacks(self, steps: Tensor, envs: Tensor) -> Tensor:
        """Stacked observations uint8 [..., stack * C, H, W] of any set of (step, environment) pairs."""
        return self.stacked(self.frame_index(steps, envs))

    def stacks_at(self, step: int, columns: slice) -> Tensor:
        """Stacked observations [n, stack * C, H, W] of neighbouring environments at one step, for acting."""
        newest, back = _newest_and_back(self.stack, self.num_envs, columns.start, columns.stop, self.device)
        age = self.age[step, columns].unsqueeze(-1)
        index = torch.sub(newest, torch.minimum(back, age), alpha=self.num_envs)
        rows = self.frames[step : step + self.stack].flatten(0, 1).index_select(0, index.flatten())
        return rows.view(len(newest), -1, *self.frames.shape[3:])

    def sequences(self, envs: Tensor, steps: int | None = None) -> Tensor:
        """Stacked observations [T, len(envs), stack * C, H, W]; T + 1 of them with `steps=T + 1`."""
        time = torch.arange(steps or self.steps, device=self.device)
        return self.stacks(time[:, None].expand(-1, len(envs)), envs[None, :].expand(len(time), -1))


@lru_cache(maxsize=64)
def _newest_and_back(
    stack: int, num_envs: int, start: int, stop: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Where neighbouring environments' newest frames are among `stack` steps of frames, and how far back the others."""
    newest = torch.arange(start, stop, device=device).unsqueeze(-1) + (stack - 1) * num_envs
    return newest, torch.arange(stack - 1, -1, -1, device=device)


def allocate_rollout(
    steps: int,
    num_envs: int,
    frame_shape: tuple[int, int, int],
    stack: int,
    state0: State = (),
    device: torch.device | str = "cpu",
) -> Rollout:
    """An empty rollout; `frame_shape` is that of one unstacked frame: channels, height, width."""

    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, device=device)

    grid = (steps, num_envs)
    return Rollout(
        frames=empty(stack + steps, num_envs, *frame_shape, dtype=torch.uint8),
        age=empty(steps + 1, num_envs, dtype=torch.int64),
        stage_ahead=empty(steps + 1, num_envs, dtype=torch.int64),
        actions=empty(*grid, dtype=torch.int64),
        logp=empty(*grid),
        rewards=empty(*grid),
        values=empty(*grid),
        terminated=empty(*grid, dtype=torch.bool),
        truncated=empty(*grid, dtype=torch.bool),
        truncation_value=empty(*grid),
        stalled=empty(*grid, dtype=torch.bool),
        version=empty(*grid, dtype=torch.int64),
        bootstrap=empty(num_envs),
        state0=tuple(part.to(device, copy=True) for part in state0),
    )
