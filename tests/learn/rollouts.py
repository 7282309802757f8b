"""Rollouts filled with random but consistent numbers, for tests of what reads them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from warpzone.learn.rollout import Final, Rollout, allocate_rollout
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy


def make_policy(recurrent_type: str = "none", stack: int = 2, heads: int = 1, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    config = ModelConfig(
        encoder="tiny",
        hidden=16,
        recurrent_type=recurrent_type,  # type: ignore[arg-type]
        memory_length=3,
        transformer_heads=2,
    )
    return Policy(config, (stack, 8, 9), num_actions=3, num_value_heads=heads)


def random_rollout(
    policy: Policy, steps: int = 6, num_envs: int = 4, stages: int = 1, seed: int = 0, end_rate: float = 0.2
) -> Rollout:
    """As a collector with these weights would give it."""
    generator = torch.Generator().manual_seed(seed)
    stack = policy.observation_shape[0]
    state0 = policy.initial_state(num_envs)
    rollout = allocate_rollout(steps, num_envs, (1, 8, 9), stack, state0)
    rollout.frames.random_(0, 256, generator=generator)
    rollout.actions.random_(0, policy.num_actions, generator=generator)
    rollout.rewards.normal_(generator=generator)
    ends = torch.rand(steps, num_envs, generator=generator)
    rollout.terminated.copy_(ends < end_rate / 2)
    rollout.truncated.copy_((ends >= end_rate / 2) & (ends < end_rate))
    rollout.stage_ahead.random_(0, stages, generator=generator)
    for t in range(steps):
        rollout.age[t + 1] = torch.where(rollout.ends[t], 0, rollout.age[t] + 1)
    with torch.no_grad():
        logits, values = policy.unroll(
            rollout.sequences(torch.arange(num_envs), steps + 1),
            state0,
            rollout.age == 0,
            stage=rollout.stage_ahead,
        )
    rollout.logp.copy_(logits[:-1].log_softmax(-1).gather(-1, rollout.actions.unsqueeze(-1)).squeeze(-1))
    rollout.values.copy_(values[:-1])
    rollout.bootstrap.copy_(values[-1])
    _truncate(policy, rollout, generator)
    return rollout


@torch.no_grad()
def _truncate(policy: Policy, rollout: Rollout, generator: torch.Generator) -> None:
    """Give truncated episodes a last observation and its value."""
    state = rollout.state0
    for t in range(rollout.steps):
        obs = rollout.stacks_at(t, slice(0, rollout.num_envs))
        _, _, state = policy.act(obs, state, rollout.starts[t], stage=rollout.stage[t])
        envs = rollout.truncated[t].nonzero().flatten()
        final = torch.randint(0, 256, obs[envs].shape, dtype=torch.uint8, generator=generator)
        memory = tuple(part[envs] for part in state)
        starts, stage = torch.zeros(len(envs), dtype=torch.bool), rollout.stage[t, envs]
        if len(envs):
            _, rollout.truncation_value[t, envs], _ = policy.act(final, memory, starts, stage=stage)
            rollout.finals.append(Final(torch.full_like(envs, t), envs, final, memory))


def copy_of(rollout: Rollout, device: str = "cpu") -> Rollout:
    """The same numbers in other memory."""

    def copied(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(device, copy=True)
        if isinstance(value, Final):
            return Final(*map(copied, value))
        return type(value)(map(copied, value))

    return Rollout(**{field.name: copied(getattr(rollout, field.name)) for field in fields(rollout)})
