"""Scales that let one learning rate fit every stage: running reward scale, and PopArt values per stage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpzone.learn.ranks import ALONE, Ranks
from warpzone.model.policy import ValueHead


class RewardScale:
    """Divides rewards by the running standard deviation of the discounted return.

    Rollouts must come in order, as each environment's return runs on from one to the next.
    """

    def __init__(
        self, gamma: float, device: torch.device | str = "cpu", clip: float = 10.0, ranks: Ranks = ALONE
    ) -> None:
        self.gamma = gamma
        self.ranks = ranks
        self.clip = clip
        self.carried: Tensor | None = None
        # Count, mean and sum of squared deviations, in float64: they run over billions of steps.
        self.moments = torch.zeros(3, dtype=torch.float64, device=device)

    def __call__(self, rewards: Tensor, ends: Tensor) -> Tensor:
        """Take in rewards [T, N] (`ends`: the last step of an episode) and return them scaled."""
        self._observe(self._running_returns(rewards, ends))
        return (rewards / self.std()).clamp_(-self.clip, self.clip)

    def std(self) -> Tensor:
        count, _, squares = self.moments
        std = (squares / count.clamp(min=1)).sqrt().float()
        return torch.where(std > 1e-8, std, 1.0)

    def _running_returns(self, rewards: Tensor, ends: Tensor) -> Tensor:
        running = self.carried
        if running is None or running.shape != rewards[0].shape:
            # The first rollout, or a run that resumed with another number of environments.
            running = torch.zeros_like(rewards[0])
        decay = self.gamma * (~ends).to(rewards.dtype)
        sums = torch.empty_like(rewards)
        for t in range(rewards.shape[0]):
            torch.add(rewards[t], running, out=sums[t])
            running = sums[t] * decay[t]
        self.carried = running
        return sums

    def _observe(self, sums: Tensor) -> None:
        """Merge a batch into the running moments (Chan et al., 1979)."""
        batch = sums.double()
        count, mean, squares = self.moments
        n = float(batch.numel() * self.ranks.size)
        batch_mean = self.ranks.sum(batch.mean()) / self.ranks.size
        delta = batch_mean - mean
        total = count + n
        deviations = self.ranks.sum((batch - batch_mean).square().sum())
        merged = squares + deviations + delta.square() * count * n / total
        self.moments = torch.stack([total, mean + delta * n / total, merged])

    def state_dict(self) -> dict[str, Any]:
        return {"moments": self.moments, "carried": self.carried}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        device = self.moments.device
        self.moments = state["moments"].to(device)
        self.carried = None if state["carried"] is None else state["carried"].to(device)


class PopArt:
    """Keeps each stage's value targets at mean 0 and deviation 1 (Hessel et al., 2018).

    The statistics live in the value head, so they travel with the weights. After each change the head's
    linear layer is rescaled, so that the values it gives stay exactly what they were.
    """

    def __init__(
        self, head: ValueHead, rate: float = 0.05, smallest_std: float = 1e-2, ranks: Ranks = ALONE
    ) -> None:
        self.head = head
        self.ranks = ranks
        self.rate = rate
        self.smallest_std = smallest_std
        self.square = head.std.square() + head.mean.square()
        self.seen = torch.zeros_like(head.mean, dtype=torch.bool)

    @torch.no_grad()
    def update(self, returns: Tensor, stage: Tensor) -> None:
        """Move each stage's statistics towards those of its returns, then rescale its output."""
        head, stage, returns = self.head, stage.flatten(), returns.flatten()
        if len(head.mean) == 1:
            stage = torch.zeros_like(stage)
        zeros = torch.zeros_like(head.mean)
        powers = (torch.ones_like(returns), returns, returns.square())
        count, sums, squares = self.ranks.sum(torch.stack([zeros.index_add(0, stage, x) for x in powers]))
        present = count > 0
        batch_mean, batch_square = sums / count.clamp(min=1), squares / count.clamp(min=1)
        # The first batch of a stage sets its statistics outright: 0 and 1 were only placeholders.
        rate = torch.where(self.seen, self.rate, 1.0) * present
        self.seen = self.seen | present
        mean = head.mean + rate * (batch_mean - head.mean)
        self.square = self.square + rate * (batch_square - self.square)
        std = (self.square - mean.square()).clamp(min=0).sqrt().clamp(min=self.smallest_std)
        ratio = head.std / std
        head.linear.weight.mul_(ratio.unsqueeze(1))
        head.linear.bias.copy_(head.linear.bias * ratio + (head.mean - mean) / std)
        head.mean.copy_(mean)
        head.std.copy_(std)

    def state_dict(self) -> dict[str, Any]:
        return {"square": self.square, "seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.square = state["square"].to(self.square.device)
        self.seen = state["seen"].to(self.seen.device)
