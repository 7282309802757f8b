"""Several nodes: what is installed on them, and hosts that move when one is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.hosted import hosted
from warpzone.cli import doctor_cluster
from warpzone.cluster import connection
from warpzone.cluster.connection import Cluster, check_nodes, import_ray
from warpzone.engine.rom import rom
from warpzone.errors import ConfigError

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def raylets() -> Iterator[Any]:
    """A head with no CPUs and two nodes with two each, all on this machine."""
    import_ray()
    from ray.cluster_utils import Cluster as Raylets

    # The head asks every second, not every three, and takes a node for lost that three times gives no answer; one that
    # is only slow has ten seconds for each.
    asks = {
        "health_check_initial_delay_ms": 1000,
        "health_check_period_ms": 1000,
        "health_check_timeout_ms": 10_000,
        "health_check_failure_threshold": 3,
    }
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": asks}
    made = Raylets(initialize_head=True, head_node_args=head)
    for name in ("one", "two"):
        made.add_node(num_cpus=2, resources={name: 1}, object_store_memory=100 << 20)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def cluster(raylets: Any) -> Iterator[Cluster]:
    with connection.connected(raylets.address) as one:
        yield one


def test_every_node_is_looked_at(cluster: Cluster) -> None:
    assert len(cluster.nodes()) == 3
    assert cluster.cpus() == 4
    check_nodes(cluster)
    checks = doctor_cluster.check_nodes(cluster, "")
    assert [check.good for check in checks] == [True] * 3
    assert all("round trip" in check.found and "MB/s" in check.found for check in checks)


def test_a_node_with_another_rom_is_refused(cluster: Cluster, raylets: Any, tmp_path: Path) -> None:
    image = bytearray(rom())
    image[-1] ^= 1
    other = tmp_path / "other.nes"
    other.write_bytes(image)
    node = raylets.add_node(num_cpus=0, env_vars={"WARPZONE_ROM": str(other)}, object_store_memory=100 << 20)
    try:
        with pytest.raises(ConfigError, match=r"has another rom \(.*\): install the same there"):
            check_nodes(cluster)
        checks = doctor_cluster.check_nodes(cluster, "")
        assert sorted(check.good for check in checks) == [False, True, True, True]
    finally:
        raylets.remove_node(node)


def test_a_rom_that_a_node_does_not_have_is_named(cluster: Cluster) -> None:
    [check, *_] = [doctor_cluster._check_node(cluster, n, {}, "/no/such.nes") for n in cluster.nodes()]
    assert not check.good
    assert "/no/such.nes" in check.found


def test_hosts_of_a_lost_node_move_to_the_others(cluster: Cluster, raylets: Any) -> None:
    """Last in this file: a node is gone after it."""
    with hosted(cluster, hosts=4, each=2, timeout_s=15) as ([envs], said):
        envs.reset()
        for _ in range(3):
            envs.send(np.ones(8, np.int64))
            assert not envs.recv()[4]["worker_lost"].any()
        own = cluster.ray.get_runtime_context().get_node_id()
        raylets.remove_node(next(n for n in raylets.worker_nodes if n.node_id != own), allow_graceful=False)
        # Processes of a node die a moment after it.
        lost, deadline = 0, time.monotonic() + 180
        while lost < 4 and time.monotonic() < deadline:
            envs.send(np.ones(8, np.int64))
            lost += int(envs.recv()[4]["worker_lost"].sum())
        # Two hosts of two environments were there; the two CPUs that are left run all four.
        assert lost == 4
        metrics = envs.metrics()
        assert metrics["episodes_lost"] == 4
        # A new host may be sent to the lost node before the head knows that it is lost.
        assert len(said) == metrics["host_restarts"] >= 2
