"""A folder with a trail through 1-1."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.starts.trails import Trail, save_trail


@pytest.fixture
def folder(trail: Trail, tmp_path: Path) -> Path:
    return save_trail(trail, tmp_path / "trails").parent
