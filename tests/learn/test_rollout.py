"""Stacks gathered from single pictures are those a step-by-step stacker would have kept."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from warpzone.learn.rollout import Rollout, allocate_rollout


def slow_stacks(rollout: Rollout, first_age: Tensor) -> Tensor:
    """Every stack [T + 1, N, S, H, W], kept step by step; `first_age` says how much of the past is usable."""
    stack, steps, envs = rollout.stack, rollout.steps, rollout.num_envs
    out = torch.zeros(steps + 1, envs, stack, *rollout.frames.shape[3:], dtype=torch.uint8)
    for n in range(envs):
        history: list[Tensor] = []
        for depth in range(stack + steps):
            t = depth - (stack - 1)
            picture = rollout.frames[depth, n, 0]
            if t < 0:
                history.append(picture)
                continue
            if t == 0 and first_age[n] < stack:
                history = history[len(history) - int(first_age[n]) :]
            if t > 0 and rollout.age[t, n] == 0:
                history = []
            history.append(picture)
            padded = [history[0]] * (stack - len(history)) + history[-stack:]
            out[t, n] = torch.stack(padded)
    return out


@settings(max_examples=40, deadline=None)
@given(
    stack=st.integers(1, 5),
    steps=st.integers(1, 9),
    end_rate=st.sampled_from([0.0, 0.3, 0.9]),
    first_age=st.lists(st.integers(0, 7), min_size=3, max_size=3),
    seed=st.integers(0, 1000),
)
def test_any_stack_matches_a_step_by_step_stacker(
    stack: int, steps: int, end_rate: float, first_age: list[int], seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    rollout = allocate_rollout(steps, 3, (1, 2, 3), stack)
    rollout.frames.random_(0, 256, generator=generator)
    rollout.age[0] = torch.tensor(first_age)
    for t in range(steps):
        ends = torch.rand(3, generator=generator) < end_rate
        rollout.age[t + 1] = torch.where(ends, 0, rollout.age[t] + 1)
    expected = slow_stacks(rollout, rollout.age[0])
    whole = rollout.sequences(torch.arange(3), steps + 1)
    assert torch.equal(whole, expected)
    for t in range(steps + 1):
        assert torch.equal(rollout.stacks_at(t, slice(1, 3)), expected[t, 1:3])
    some_steps = torch.randint(0, steps + 1, (7,), generator=generator)
    some_envs = torch.randint(0, 3, (7,), generator=generator)
    assert torch.equal(rollout.stacks(some_steps, some_envs), expected[some_steps, some_envs])


def test_channels_of_a_picture_stay_together() -> None:
    rollout = allocate_rollout(2, 1, (3, 2, 2), stack=2)
    rollout.frames.random_(0, 256)
    rollout.age[:, 0] = torch.tensor([5, 6, 7])
    expected = torch.cat([rollout.frames[1, 0], rollout.frames[2, 0]])
    assert torch.equal(rollout.stacks(torch.tensor([1]), torch.tensor([0]))[0], expected)


def test_each_picture_is_stored_once() -> None:
    rollout = allocate_rollout(32, 8, (1, 84, 84), stack=4)
    assert rollout.frames.shape[0] == 3 + 32 + 1
    assert rollout.num_decisions == 256
