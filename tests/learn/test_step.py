"""The gradient step on replayed samples, against a slow reference."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.learn.rollouts import make_policy, random_rollout
from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.minibatch import Batch
from warpzone.learn.replay import PrioritisedReplay
from warpzone.learn.step import Adam, GradientStep
from warpzone.model.policy import Policy

CONFIG = ReplayConfig(
    per=True, per_batch_size=18, per_policy_coef=0.7, per_value_coef=0.3, per_prefetch=False
)


def replayed_batch(policy: Policy) -> Batch:
    """Samples of a policy with other weights."""
    older = make_policy(policy.config.recurrent_type, heads=policy.num_value_heads, seed=1)
    rollout = random_rollout(older, stages=policy.num_value_heads)
    for part in rollout.state0:
        if part.is_floating_point():
            part.normal_(generator=torch.Generator().manual_seed(2))
    replay = PrioritisedReplay(CONFIG, rollout, recurrent=policy.is_recurrent, seed=1)
    replay.push(rollout, rollout.rewards + 1, rollout.rewards)
    return replay.sample()[0].batch


def outputs(policy: Policy, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits and values, one step after the other."""
    stage = batch.integers[1]
    if batch.starts is None:
        logits, values, _ = policy.act(batch.obs, stage=stage)
        return logits, values
    steps, state = [], batch.state
    for t, starts in enumerate(batch.starts):
        logits, values, state = policy.act(batch.obs[t], state, starts, stage=stage[t])
        steps.append((logits, values))
    return torch.stack([logits for logits, _ in steps]), torch.stack([values for _, values in steps])


def slow_loss(policy: Policy, batch: Batch, advantage_std: float, popart: bool) -> tuple[Tensor, Tensor]:
    """Sample by sample, from the definitions."""
    logits, values = outputs(policy, batch)
    errors = torch.zeros_like(values)
    losses = []
    assert batch.weight is not None
    for at in torch.cartesian_prod(*map(torch.arange, values.shape)).reshape(-1, values.dim()).tolist():
        i = tuple(at)
        action, stage = (int(number[i]) for number in batch.integers)
        old_logp, target = float(batch.floats[0][i]), float(batch.floats[2][i])
        logp = logits[i].log_softmax(-1)[action]
        errors[i] = error = target - values[i].item()
        ratio = min(1.0, float(torch.exp(logp.detach() - old_logp)))
        scale = policy.value.std[stage].item() if popart else 1.0
        policy_loss = -logp * ratio * error / advantage_std
        value_loss = 0.5 * ((values[i] - target) / scale) ** 2
        loss = CONFIG.per_policy_coef * policy_loss + CONFIG.per_value_coef * value_loss
        if batch.starts is not None and i[0] < 6 // 4 and not batch.starts[: i[0] + 1, i[1]].any():
            loss = 0.0 * loss
        losses.append(float(batch.weight[i[-1]]) * loss)
    return torch.stack(losses).mean(), errors


@pytest.mark.parametrize("recurrent_type", ["none", "gru", "lstm", "transformer"])
@pytest.mark.parametrize("popart", [False, True])
def test_a_replayed_step_has_the_loss_and_gradients_of_the_definition(
    recurrent_type: str, popart: bool
) -> None:
    policy = make_policy(recurrent_type, heads=2)
    if popart:
        policy.value.std.copy_(torch.tensor([2.0, 0.5]))
        policy.value.mean.copy_(torch.tensor([0.3, -0.2]))
    reference = copy.deepcopy(policy)
    batch = replayed_batch(policy)
    loss, errors = GradientStep(policy, LearnConfig(max_grad_norm=0, normalise_values=popart)).replay(
        batch, CONFIG, torch.tensor(1.7)
    )
    expected_loss, expected_errors = slow_loss(reference, batch, 1.7, popart)
    expected_loss.backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(loss, expected_loss.detach(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(errors, expected_errors, atol=1e-5, rtol=1e-4)
    moved = 0
    for (name, found), expected in zip(policy.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(
            found.grad, expected.grad, atol=1e-5, rtol=1e-3, msg=lambda m, n=name: f"{n}: {m}"
        )
        moved += not torch.equal(found, expected)
    assert moved > 4


def test_the_memory_of_a_replayed_sequence_is_burnt_in() -> None:
    """Nothing is learned where the memory is still mostly that of older weights."""
    policy = make_policy("gru")
    batch = replayed_batch(policy)
    assert batch.starts is not None
    starts = torch.zeros_like(batch.starts)
    starts[0, 0] = True  # this sequence begins with an episode: its memory is empty and right

    def gradient(**changes: Any) -> Tensor:
        learner = copy.deepcopy(policy)
        changed = batch._replace(starts=starts, **changes)
        GradientStep(learner, LearnConfig(max_grad_norm=0)).replay(changed, CONFIG, torch.tensor(1.0))
        grad = learner.value.linear.bias.grad
        assert grad is not None
        return grad

    floats = batch.floats.clone()
    floats[2, 0, 1:] += 5.0
    torch.testing.assert_close(gradient(floats=floats), gradient())
    floats[2, 0, 0] += 5.0
    assert not torch.allclose(gradient(floats=floats), gradient())


def test_adam_is_torchs() -> None:
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    settings: Any = {"lr": 1e-2, "eps": 1e-5, "fused": True}
    chance = torch.Generator().manual_seed(0)
    sides = [(ours, Adam(ours.parameters(), **settings))]
    sides.append((theirs, torch.optim.Adam(theirs.parameters(), **settings)))  # type: ignore[arg-type]
    for number in range(6):
        inputs = torch.randn(4, 5, generator=chance)
        for net, adam in sides:
            adam.zero_grad(set_to_none=True)
            net(inputs).square().sum().backward()
            assert torch.is_grad_enabled()
            adam.step()
        if number == 2:
            # Checkpoints of either can be resumed with the other.
            states = [copy.deepcopy(adam.state_dict()) for _, adam in sides]
            for (_, adam), state in zip(sides, reversed(states), strict=True):
                adam.load_state_dict(state)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)
    states = [adam.state_dict() for _, adam in sides]
    assert states[0]["param_groups"] == states[1]["param_groups"]
    for index, moments in states[1]["state"].items():
        for name, value in moments.items():
            assert torch.equal(states[0]["state"][index][name], value)
