"""`warpzone doctor cluster`: every node of a Ray cluster, before anything starts there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warpzone.cli.doctor_checks import Check
from warpzone.cluster.connection import Cluster, answer, ask, connected, different
from warpzone.cluster.host import identity
from warpzone.cluster.nodes import distance
from warpzone.errors import ConfigError


@dataclass(frozen=True)
class ClusterConfig:
    """Check that all nodes of a Ray cluster have the same versions, engine and ROM; time the network to each."""

    cluster: str = "auto"
    """Ray cluster: local, auto or HEAD:PORT."""
    rom: str = ""
    """Path of the ROM on every node; by default $WARPZONE_ROM or the installed package's."""


def check_cluster(config: ClusterConfig) -> list[Check]:
    """One check for each node."""
    with connected(config.cluster) as cluster:
        return check_nodes(cluster, config.rom)


def check_nodes(cluster: Cluster, rom: str) -> list[Check]:
    own = identity(rom)
    return [_check_node(cluster, node, own, rom) for node in cluster.nodes()]


def _check_node(cluster: Cluster, node: Mapping[str, Any], own: Mapping[str, str], rom: str) -> Check:
    name = f"node {node['NodeManagerAddress']} ({node['NodeManagerHostname']})"
    has = node["Resources"]
    try:
        theirs = answer(cluster, node, ask(cluster, node, identity, rom))
        far = distance(cluster, node)
    except (ConfigError, cluster.ray.exceptions.RayError) as error:
        return Check(name, False, str(error), "see `ray status`, and install the same version there")
    found = (
        f"{has.get('CPU', 0):g} CPUs, {has.get('GPU', 0):g} GPUs, Python {theirs['python']}, Warpzone "
        f"{theirs['warpzone']}, ROM {theirs['rom']}, engine {theirs['engine']}, round trip {far.round_trip_ms:.2f} ms, "
        f"{far.mb_per_s:,.0f} MB/s"
    )
    differs = different(own, theirs)
    return Check(name, not differs, f"{found}; {differs}" if differs else found, "install the same there")
