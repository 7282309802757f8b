"""Objectives, and statistics of an update."""

from __future__ import annotations

import torch
from torch import Tensor

from warpzone.learn.ranks import ALONE, Ranks


def action_logp(logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each action and the entropy of each distribution."""
    logp = logits.log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    return logp.gather(-1, actions.unsqueeze(-1)).squeeze(-1), entropy


def policy_gradient_loss(logp: Tensor, advantages: Tensor) -> Tensor:
    """The plain policy gradient, per sample."""
    return -logp * advantages


def clipped_loss(logp: Tensor, old_logp: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """PPO's objective, per sample: no reward for moving an action's probability by more than `clip`."""
    ratio = (logp - old_logp).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


def value_loss(
    values: Tensor,
    returns: Tensor,
    old_values: Tensor,
    clip: float | None = None,
    scale: Tensor | None = None,
) -> Tensor:
    """Half the squared error, per sample, in units of `scale`.

    With `clip` a value may move that far from `old_values` before its gradient vanishes.
    """
    error, moved = values - returns, values - old_values
    if scale is not None:
        error, moved = error / scale, moved / scale
    loss = 0.5 * error.square()
    if clip is None:
        return loss
    clipped = error + (moved.clamp(-clip, clip) - moved)
    return torch.maximum(loss, 0.5 * clipped.square())


def teacher_kl(logits: Tensor, teacher: Tensor) -> Tensor:
    """KL(teacher || policy) per sample; 0 where the teacher's probabilities are all 0."""
    return (torch.xlogy(teacher, teacher) - teacher * logits.log_softmax(-1)).sum(-1)


def approximate_kl(logp: Tensor, old_logp: Tensor) -> Tensor:
    """KL(old || new) per sample by the estimator (r - 1) - log r, which is never negative."""
    log_ratio = logp - old_logp
    return log_ratio.exp() - 1 - log_ratio


def clip_fraction(logp: Tensor, old_logp: Tensor, clip: float) -> Tensor:
    """1 for every sample whose ratio left the clip range."""
    return (((logp - old_logp).exp() - 1).abs() > clip).to(logp.dtype)


def explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """1 is a perfect prediction, 0 no better than the mean."""
    return 1 - (returns - values).var() / returns.var().clamp(min=1e-8)


def normalise_advantages(
    advantages: Tensor, stage: Tensor | None = None, num_stages: int = 1, ranks: Ranks = ALONE
) -> Tensor:
    """Advantages with mean 0 and standard deviation 1, over everything or (with `stage`) within each stage."""
    group = torch.zeros_like(advantages, dtype=torch.int64) if stage is None else stage
    flat_group = group.flatten()

    def total(x: Tensor) -> Tensor:
        sums = torch.zeros(num_stages, dtype=advantages.dtype, device=advantages.device)
        return ranks.sum(sums.index_add_(0, flat_group, x.flatten()))

    count = total(torch.ones_like(advantages)).clamp_(min=1.0)
    mean = total(advantages) / count
    centred = advantages - mean[group]
    std = (total(centred.square()) / count).sqrt()
    # A stage with a single step (or none) has no spread to divide by.
    std = torch.where(std > 1e-8, std, 1.0)
    return centred / std[group]
