"""Small networks run fastest, and most repeatably, on one thread."""

import fcntl
import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import torch

from warpzone.run.build import rom_digest
from warpzone.run.presets import CPU
from warpzone.starts.exploration import find_trail
from warpzone.starts.trails import Trail, load_trail, save_trail

torch.set_num_threads(1)
# A machine that is busy may take longer over an example than it did, which says nothing about the code.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")
# Threads of commands that use more do not wait at full speed while others have work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Training in this process may leave more."""
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trail(tmp_path_factory: pytest.TempPathFactory) -> Trail:
    """A trail through 1-1, by its pipe. It takes long to find, so one process looks for it and the others wait."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (folder / "trail.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (known := load_trail(folder, "1-1")) is not None:
            return known
        found = find_trail("1-1", rom_sha256=rom_digest(CPU), seed=3)
        assert found is not None
        save_trail(found, folder)
        return found


LONG = ("cluster", "native", "e2e")
"""Folders whose tests take longest: first, so that no process waits for them in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.parent.name not in LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One process runs a file, or all files that start a Ray cluster: two that start at once take too long for Ray."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "cluster" if file.startswith("tests/cluster/") else file

    return ByFile(config, log)
