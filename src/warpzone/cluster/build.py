"""The environments of a run on the hosts of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.cluster.connection import Cluster
from warpzone.cluster.environments import HostEnvironments
from warpzone.cluster.fleet import Fleet
from warpzone.cluster.host import HostSettings
from warpzone.envs.config import cores
from warpzone.envs.interface import spread_seeds
from warpzone.envs.rewards import RewardShaper
from warpzone.run.build import pinned, views_and_reward
from warpzone.run.config import TrainConfig

UNPACKING_THREADS = 4
"""At most; one unpacks about 350,000 frames of 84x84 a second."""


CORES_BESIDE = 2
"""What the learner and Ray need of the cores that they share with local hosts: one to collect, one to learn."""


def host_threads(config: TrainConfig, cpus: int) -> int:
    """Emulation threads of each host: the CPUs there are, divided among them."""
    shared = config.scale.cluster == "local" and cpus > 2 * CORES_BESIDE
    free = cpus - CORES_BESIDE if shared else cpus
    return config.stage.env_threads or max(1, free // config.scale.env_hosts)


def host_environments(
    cluster: Cluster, config: TrainConfig, device: torch.device, say: Callable[[str], None]
) -> list[HostEnvironments]:
    """Start the hosts of a run: every host has a part of each group of environments, so that none of them rests while
    the policy acts for one group."""
    views, reward = views_and_reward(config)
    hosts, seed = config.scale.env_hosts, config.run.seed
    each = config.collect.num_envs // len(views) // hosts
    settings = HostSettings(
        tuple(views),
        each,
        tuple(config.stage.names()),
        host_threads(config, cluster.cpus()),
        config.stage.rom,
    )
    groups: list[HostEnvironments] = []

    def first(host: int, group: int, replaced: int) -> tuple[NDArray[np.uint64], Sequence[float] | None]:
        if replaced:
            random = np.random.SeedSequence([seed % 2**64, host, group, replaced])
            return random.generate_state(each, np.uint64).astype(np.uint64), groups[group].weights
        own = spread_seeds(seed * len(views) + group, each * hosts)
        return own[host * each : (host + 1) * each], groups[group].weights

    fleet = Fleet(cluster, settings, hosts, config.scale.host_timeout, first, say)
    unpacking = min(UNPACKING_THREADS, cores())
    empty: Any = pinned if device.type == "cuda" else np.empty
    for group, view in enumerate(views):
        shaper = RewardShaper(reward, each * hosts, by_jumps=view.ground == "stood")
        groups.append(HostEnvironments(fleet, group, shaper, unpacking, empty))
    nodes = sorted({slot.node for slot in fleet.slots})
    say(
        f"[cluster] {hosts} hosts of {each * len(views)} environments, {settings.threads} threads each, on "
        f"{', '.join(nodes)}"
    )
    return groups
