"""A local Ray for the tests of a file. It ends with the file: a process can be in one cluster at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warpzone.cluster.connection import Cluster, connect


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        # Another cluster that runs on this machine, as that of tests beside these, is none of ours.
        patch.setenv("RAY_ADDRESS", "127.0.0.1:1")
        cluster = connect("local", local_cpus=8)
    yield cluster
    cluster.close()
