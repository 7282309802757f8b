"""A local Ray for the tests of a file. It ends with the file: a process can be in one cluster at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warpzone.cluster.connection import Cluster, connected


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with connected("local", local_cpus=8) as cluster:
        yield cluster
