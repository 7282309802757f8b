"""Value and advantage targets: GAE, V-trace and n-step returns.

All tensors are time-major [T, N]. A terminated step has no future; a truncated one has the value of the
last observation (`truncation_value`); the last step has `bootstrap` [N]. Nothing crosses the end of
an episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Trajectory:
    """T steps of N environments, as far as targets depend on them."""

    rewards: Tensor
    values: Tensor
    terminated: Tensor
    truncated: Tensor
    truncation_value: Tensor
    bootstrap: Tensor

    def continues(self) -> Tensor:
        """1 where the next step belongs to the same episode, else 0."""
        return (~(self.terminated | self.truncated)).to(self.values.dtype)

    def following(self, estimates: Tensor) -> Tensor:
        """The value after each step, by `estimates` [T, N] where the episode continues."""
        after = torch.cat([estimates[1:], self.bootstrap.unsqueeze(0)])
        return torch.where(self.terminated, 0.0, torch.where(self.truncated, self.truncation_value, after))


class Targets(NamedTuple):
    """`returns` for the value head to predict and `advantages` for the policy to follow."""

    returns: Tensor
    advantages: Tensor


def gae(steps: Trajectory, gamma: float, lam: float) -> Targets:
    """Generalised advantage estimation (Schulman et al., 2016)."""
    errors = steps.rewards + gamma * steps.following(steps.values) - steps.values
    advantages = _accumulate(errors, gamma * lam * steps.continues())
    return Targets(advantages + steps.values, advantages)


def vtrace(
    steps: Trajectory,
    log_ratio: Tensor,
    gamma: float,
    lam: float = 1.0,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
) -> Targets:
    """V-trace (Espeholt et al., 2018): corrects for actions chosen by older weights.

    `log_ratio` is log pi(a) - log mu(a), pi being the policy now and mu the one that acted. The advantages
    carry the clipped ratio already.
    """
    ratio = log_ratio.exp()
    rho = ratio.clamp(max=rho_clip)
    errors = rho * (steps.rewards + gamma * steps.following(steps.values) - steps.values)
    decay = gamma * lam * ratio.clamp(max=c_clip) * steps.continues()
    returns = steps.values + _accumulate(errors, decay)
    advantages = rho * (steps.rewards + gamma * steps.following(returns) - steps.values)
    return Targets(returns, advantages)


def nstep(steps: Trajectory, gamma: float, n: int) -> Targets:
    """Returns over n rewards and then the value; over the whole rollout where n is its length or more."""
    if n >= steps.rewards.shape[0]:
        return gae(steps, gamma, 1.0)
    returns = steps.values
    for _ in range(n):
        returns = steps.rewards + gamma * steps.following(returns)
    return Targets(returns, returns - steps.values)


def _accumulate(errors: Tensor, decay: Tensor) -> Tensor:
    """Backward sums a[t] = errors[t] + decay[t] * a[t+1]: one kernel a step."""
    sums = torch.empty_like(errors)
    sums[-1] = errors[-1]
    for t in range(errors.shape[0] - 2, -1, -1):
        torch.addcmul(errors[t], decay[t], sums[t + 1], out=sums[t])
    return sums
