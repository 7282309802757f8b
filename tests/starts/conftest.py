"""A trail through 1-1."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.run.build import rom_digest
from warpzone.run.presets import CPU
from warpzone.starts.exploration import find_trail
from warpzone.starts.trails import Trail, save_trail


@pytest.fixture(scope="session")
def trail() -> Trail:
    found = find_trail("1-1", rom_sha256=rom_digest(CPU), seed=3, minutes=5)
    assert found is not None
    return found


@pytest.fixture
def folder(trail: Trail, tmp_path: Path) -> Path:
    return save_trail(trail, tmp_path / "trails").parent
