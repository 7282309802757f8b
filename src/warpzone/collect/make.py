"""The collector that the settings ask for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch

from warpzone.collect.collector import Collector
from warpzone.collect.config import CollectConfig
from warpzone.collect.graphed import GraphedActor
from warpzone.collect.interfaces import Actor, Environments
from warpzone.collect.overlap import OverlappedCollector
from warpzone.errors import ConfigError
from warpzone.model.policy import Policy
from warpzone.model.snapshot import Snapshot


def make_collector(
    config: CollectConfig,
    envs: Sequence[Environments],
    actor: Actor,
    snapshot: Callable[[], Snapshot],
    *,
    stack: int = 4,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> Collector | OverlappedCollector:
    """The collector that `config` asks for; call `start` before the first `collect`.

    `envs` is one vector of environments, or one for each group with `double_buffer`. `actor` is the learner's policy (a
    copy of it will act) or another Actor; `snapshot` gives its newest weights (`learner.policy_snapshot`).
    """
    if len(envs) != config.groups:
        raise ConfigError(
            f"{config.groups} groups of environments do not go with {len(envs)} environment vectors."
        )
    if isinstance(actor, Policy):
        policy = copy.deepcopy(actor).to(device).requires_grad_(False)
        records = config.acting_graphs and torch.device(device).type == "cuda" and not policy.is_recurrent
        actor = GraphedActor(policy, {part.num_envs for part in envs}) if records else policy
    steps = config.rollout_steps
    collector = Collector(envs, actor, snapshot, steps=steps, stack=stack, device=device, seed=seed)
    return OverlappedCollector(collector) if config.overlap_collect else collector
