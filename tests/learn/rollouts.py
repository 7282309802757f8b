"""Rollouts filled with random but consistent numbers, for tests of what reads them."""

from __future__ import annotations

import torch

from warpzone.learn.rollout import Rollout, allocate_rollout
from warpzone.model import ModelConfig, Policy, build_policy


def make_policy(recurrent_type: str = "none", stack: int = 2, heads: int = 1, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    config = ModelConfig(
        encoder="tiny",
        hidden=16,
        recurrent_type=recurrent_type,  # type: ignore[arg-type]
        memory_length=3,
        transformer_heads=2,
    )
    return build_policy(config, (stack, 8, 9), num_actions=3, num_value_heads=heads)


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
    rollout.truncation_value.copy_(torch.where(rollout.truncated, 0.5, 0.0))
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
    return rollout
