"""Small networks run fastest, and most repeatably, on one thread."""

import os
from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)
# Threads of commands that use more do not wait at full speed while others have work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Training in this process may leave more."""
    yield
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs a file, or all files that start a Ray cluster: two that start at once take too long for Ray."""
    for item in items:
        folder = item.path.parent.name
        item.add_marker(pytest.mark.xdist_group("cluster" if folder == "cluster" else str(item.path)))
