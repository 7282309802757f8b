"""Settings of runs on more than one machine or GPU."""

from __future__ import annotations

from dataclasses import dataclass

from warpzone.errors import ConfigError


@dataclass(frozen=True)
class ScaleConfig:
    """More than one machine or GPU: environments on the hosts of a Ray cluster, data-parallel learners."""

    cluster: str = ""
    """Ray cluster for the environments: local, auto, HEAD:PORT or none."""
    env_hosts: int = 1
    """Environment hosts on the cluster."""
    envs_per_host: int = 0
    """Environments of each host (0 = --num-envs divided among the hosts)."""
    host_timeout: float = 30.0
    """Seconds a host may be silent before it is replaced."""
    gpus: int = 1
    """Learners that share the batch, one per GPU; with --device cpu, processes."""

    def __post_init__(self) -> None:
        if self.env_hosts < 1 or self.envs_per_host < 0:
            raise ConfigError("--env-hosts must be at least 1, and --envs-per-host can't be negative.")
        if self.gpus < 1:
            raise ConfigError("--gpus must be at least 1.")
        if self.host_timeout <= 0:
            raise ConfigError("--host-timeout must be more than 0 seconds.")
        if not self.cluster and (self.env_hosts > 1 or self.envs_per_host):
            raise ConfigError("--env-hosts and --envs-per-host need --cluster local, auto or HEAD:PORT.")

    @property
    def on_cluster(self) -> bool:
        return self.cluster not in ("", "none")
