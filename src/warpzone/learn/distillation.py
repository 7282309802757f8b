"""Policy distillation: teachers' action probabilities for the decisions of a student."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from warpzone.learn.minibatch import Samples
from warpzone.model.policy import Policy

EVALUATION_SIZE = 4096
"""Decisions a teacher evaluates at once; bounds the memory."""


class Teachers:
    """One policy for each stage that has a teacher, by the number of the stage.

    They see what the student sees; one that learned on smaller frames sees them reduced.
    """

    def __init__(self, policies: Mapping[int, Policy], temperature: float = 1.0) -> None:
        self.policies = dict(policies)
        self.temperature = temperature

    @torch.no_grad()
    def probabilities(self, samples: Samples) -> Tensor:
        """Teachers' probabilities at each decision of a rollout, [T, N, A]; all 0 where a stage has no teacher."""
        rollout = samples.rollout
        stage = rollout.stage.flatten()
        num_actions = next(iter(self.policies.values())).num_actions
        out = torch.zeros(len(stage), num_actions, device=rollout.device)
        counts: list[int] = torch.bincount(stage).tolist()
        by_stage = stage.argsort(stable=True).split(counts)  # type: ignore[no-untyped-call]
        for number, decisions in enumerate(by_stage):
            policy = self.policies.get(number)
            if policy is None:
                continue
            for part in decisions.split(EVALUATION_SIZE):
                obs = rollout.stacked(samples.frame_index.index_select(0, part))
                logits, _, _ = policy.act(reduced(obs, policy.observation_shape[1:]))
                out[part] = (logits.float() / self.temperature).softmax(-1)
        return out.view(*rollout.stage.shape, num_actions)


def reduced(obs: Tensor, size: tuple[int, int]) -> Tensor:
    """Observations [B, C, H, W] in a smaller size: each pixel is the mean of the area it covers."""
    if obs.shape[2:] == size:
        return obs
    rows, columns = (_shares(*sizes, obs.device) for sizes in zip(obs.shape[2:], size, strict=True))
    return (rows @ obs.float() @ columns.T).round().to(torch.uint8)


def _shares(large: int, small: int, device: torch.device) -> Tensor:
    """[small, large]: how much of each new pixel comes from each old one, along one side."""
    step = large / small
    begin = step * torch.arange(small, device=device).unsqueeze(1)
    pixel = torch.arange(large, device=device)
    overlap = torch.minimum(begin + step, pixel + 1) - torch.maximum(begin, pixel)
    return overlap.clamp(min=0) / step
