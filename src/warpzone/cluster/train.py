"""Training wherever the settings say: in this process, or with environments on a cluster."""

from __future__ import annotations

from functools import partial

from warpzone.cluster.build import host_environments
from warpzone.cluster.connection import check_nodes, connected
from warpzone.run import loop
from warpzone.run.build import cores
from warpzone.run.config import TrainConfig
from warpzone.run.log import Display
from warpzone.run.loop import Outcome


def train(config: TrainConfig, display: Display) -> Outcome:
    """Train until a limit, the target or a signal; leave the run so that it can be resumed."""
    if not config.scale.on_cluster:
        return loop.train(config, display)
    hosts = config.scale.env_hosts
    local_cpus = max(cores(), hosts * (config.stage.env_threads or 1))
    with connected(config.scale.cluster, local_cpus) as cluster:
        check_nodes(cluster, config.stage.rom)
        return loop.train(config, display, partial(host_environments, cluster))
