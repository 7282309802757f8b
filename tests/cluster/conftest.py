"""One Ray for all tests of a process: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warpzone.cluster.connection import Cluster, connected


@pytest.fixture(scope="session")
def local() -> Iterator[Cluster]:
    with connected("local", local_cpus=8) as cluster:
        yield cluster
