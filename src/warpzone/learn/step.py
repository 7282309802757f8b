"""One gradient step: loss, gradients, clipping, Adam. Nothing here waits for the device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpzone.learn.augmentation import shifted
from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.losses import (
    action_logp,
    approximate_kl,
    clip_fraction,
    clipped_loss,
    policy_gradient_loss,
    teacher_kl,
    value_loss,
)
from warpzone.learn.minibatch import Batch
from warpzone.learn.ranks import ALONE, Ranks
from warpzone.model.policy import Policy

STATISTICS = (
    *("loss_total", "loss_policy", "loss_value", "loss_teacher", "loss_augment"),
    *("entropy", "approx_kl", "clip_fraction", "grad_norm"),
)
KL = STATISTICS.index("approx_kl")
Batches = Iterable[tuple[Tensor, Tensor]]
"""Observations and the actions to choose there."""
Demonstration = Callable[[int], Batches]
"""What to imitate after an update, by its number."""


class Adam(torch.optim.Adam):
    """torch's, without what it does for torch.compile: importing that would take two seconds at the start of a run."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    state_dict = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Adam.load_state_dict)


class GradientStep:
    """Owns the optimizer and sums each step's statistics on the device, to be read once an epoch."""

    def __init__(self, policy: Policy, config: LearnConfig, ranks: Ranks = ALONE) -> None:
        self.policy = policy
        self.ranks = ranks
        self.config = config
        self.clipped = config.recipe().objective == "clipped"
        self.parameters = [p for p in policy.parameters() if p.requires_grad]
        device = self.parameters[0].device
        on_cuda = device.type == "cuda"
        self.entropy_coef = torch.zeros((), device=device)
        self.teacher_coef = torch.zeros((), device=device)
        # A graph reads the learning rate from the device each time it is replayed.
        lr = torch.tensor(config.learning_rate, device=device) if on_cuda else config.learning_rate
        self.optimizer = Adam(
            self.parameters,
            lr=lr,
            eps=config.adam_eps,
            weight_decay=config.weight_decay,
            fused=True,
            capturable=on_cuda,
        )
        needs_scaling = on_cuda and config.amp and config.amp_dtype == "float16"
        self.scaler = torch.amp.GradScaler("cuda", enabled=needs_scaling)
        self.statistics = torch.zeros(len(STATISTICS), device=device)

    def set_rates(self, learning_rate: float, entropy_coef: float, teacher_coef: float) -> None:
        self.entropy_coef.fill_(entropy_coef)
        self.teacher_coef.fill_(teacher_coef)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(learning_rate)
            else:
                group["lr"] = learning_rate

    def load_optimizer(self, state: dict[str, Any]) -> None:
        """Adam's moments from a checkpoint, which may come from another device; its settings stay ours."""
        ours = [{k: v for k, v in group.items() if k != "params"} for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(state)
        for group, settings in zip(self.optimizer.param_groups, ours, strict=True):
            group.update(settings)

    def take_statistics(self) -> Tensor:
        """Sums since the last call; divide by the steps taken for means."""
        sums = self.ranks.sum(self.statistics.clone()) / self.ranks.size
        self.statistics.zero_()
        return sums

    def __call__(self, slices: Sequence[Batch]) -> None:
        """One step on a minibatch that comes in equal slices."""
        self.optimizer.zero_grad(set_to_none=True)
        for batch in slices:
            loss, statistics = self.loss(batch)
            self.scaler.scale(loss / len(slices)).backward()  # type: ignore[no-untyped-call]
            self.statistics[:-1] += statistics / len(slices)
        self.statistics[-1] += self.apply_gradients()

    def replay(self, batch: Batch, config: ReplayConfig, advantage_std: Tensor) -> tuple[Tensor, Tensor]:
        """One step on replayed samples: the loss, and each sample's error in value.

        Actions of older weights count by the truncated importance ratio of V-trace, never more than 1. The first
        steps of a sequence whose stored memory is of older weights are burn-in: they have no loss.
        """
        old_logp, _, returns, _ = batch.floats
        actions, stage = batch.integers
        assert batch.weight is not None
        self.optimizer.zero_grad(set_to_none=True)
        logits, values = evaluate(self.policy, batch)
        logp, _ = action_logp(logits, actions)
        errors = (returns - values).detach()
        ratio = (logp.detach() - old_logp).exp().clamp(max=1.0)
        policy_loss = policy_gradient_loss(logp, ratio * errors / advantage_std)
        scale = self.policy.value.scale(stage) if self.config.normalise_values else None
        critic_loss = value_loss(values, returns, values, scale=scale)
        per_sample = config.per_policy_coef * policy_loss + config.per_value_coef * critic_loss
        if batch.starts is not None:
            per_sample = per_sample * after_burn_in(batch.starts)
        loss = (batch.weight * per_sample).mean()
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.apply_gradients()
        return loss.detach(), errors

    def imitate(self, batches: Batches) -> dict[str, float]:
        """One step towards the actions of each batch; the mean loss, if there are any."""
        losses = []
        for obs, actions in batches:
            self.optimizer.zero_grad(set_to_none=True)
            obs = obs.to(self.entropy_coef.device)
            starts = torch.ones(len(obs), dtype=torch.bool, device=obs.device)
            logits, _, _ = self.policy.act(obs, self.policy.initial_state(len(obs), obs.device), starts)
            loss = -action_logp(logits, actions.to(obs.device))[0].mean()
            self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            self.apply_gradients()
            losses.append(loss.detach())
        return {"loss_imitation": float(sum(losses)) / len(losses)} if losses else {}

    def apply_gradients(self) -> Tensor:
        """Average over the ranks, clip, step, and give the gradient's length before clipping."""
        # Before unscaling, so that an overflow on one rank is seen on all.
        self.ranks.average_gradients(self.parameters)
        self.scaler.unscale_(self.optimizer)
        limit = self.config.max_grad_norm or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, limit)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return norm

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss of a batch and its statistics, in the order of STATISTICS."""
        config = self.config
        old_logp, advantages, returns, old_values = batch.floats
        actions, stage = batch.integers
        logits, values = evaluate(self.policy, batch)
        logp, entropy = action_logp(logits, actions)
        if self.clipped:
            policy_loss = clipped_loss(logp, old_logp, advantages, config.clip).mean()
        else:
            policy_loss = policy_gradient_loss(logp, advantages).mean()
        scale = self.policy.value.scale(stage) if config.normalise_values else None
        critic_loss = value_loss(values, returns, old_values, config.value_clip or None, scale).mean()
        entropy = entropy.mean()
        total = policy_loss + config.value_coef * critic_loss - self.entropy_coef * entropy
        distance = torch.zeros_like(total)
        if batch.teacher is not None:
            distance = teacher_kl(logits, batch.teacher).mean()
            total = total + self.teacher_coef * distance
        unlike = torch.zeros_like(total)
        if batch.shifts is not None:
            moved_logits, moved_values = evaluate(
                self.policy, batch._replace(obs=shifted(batch.obs, batch.shifts))
            )
            apart = value_loss(moved_values, values.detach(), values.detach(), scale=scale).mean()
            unlike = teacher_kl(moved_logits, logits.detach().softmax(-1)).mean() + config.value_coef * apart
            total = total + config.augment_coef * unlike
        with torch.no_grad():
            kl = approximate_kl(logp, old_logp).mean()
            clipped = clip_fraction(logp, old_logp, config.clip).mean()
            statistics = torch.stack(
                [total, policy_loss, critic_loss, distance, unlike, entropy, kl, clipped]
            )
        return total, statistics


class GraphedStep:
    """A GradientStep recorded as a CUDA graph and replayed: one launch instead of hundreds.

    `batch` is the memory the graph reads; fill it, then call. The first calls run eagerly, since Adam's state
    and the libraries' workspaces must exist before recording; recording itself computes nothing.
    """

    EAGER_CALLS = 3

    def __init__(self, step: GradientStep, batch: Batch) -> None:
        self.step = step
        self.batch = batch
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self) -> None:
        if self.calls < self.EAGER_CALLS:
            self._run_eagerly()
        elif self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
                self.step([self.batch])
            self.graph.replay()
        else:
            self.graph.replay()
        self.calls += 1

    def _run_eagerly(self) -> None:
        """On the stream that will record, as the allocator keeps memory apart by stream."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.step([self.batch])
        torch.cuda.current_stream().wait_stream(self.stream)


def after_burn_in(starts: Tensor) -> Tensor:
    """1 for steps [T, B] after the first quarter or after the start of an episode, where memory is fresh, else 0."""
    steps = torch.arange(len(starts), device=starts.device).unsqueeze(1)
    return ((steps >= len(starts) // 4) | (starts.cumsum(0) > 0)).float()


def evaluate(policy: Policy, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits and values of a batch, with the batch's own shape."""
    stage = batch.integers[1]
    if batch.starts is None:
        logits, values, _ = policy.act(batch.obs, stage=stage)
        return logits, values
    return policy.unroll(batch.obs, batch.state, batch.starts, stage=stage)
