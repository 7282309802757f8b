"""A run killed at any moment, also while it saves on a failing disk, goes on from a sound checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from .kill_trial import FAULTS, kill_once


@pytest.mark.parametrize("fault", FAULTS)
def test_a_killed_run_loses_at_most_one_interval(tmp_path: Path, fault: str) -> None:
    for seed in range(2):
        outcome = kill_once(tmp_path / "run", seed, fault)
        assert outcome.problem == ""
    assert outcome.resumed_from >= 0
