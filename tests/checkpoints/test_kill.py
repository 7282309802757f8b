"""A run killed at any moment, also while it saves on a failing disk, goes on from a sound checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from .kill_trial import FAULTS, kill_once
from .train_kill_trial import kill_training


@pytest.mark.parametrize("fault", FAULTS)
def test_a_killed_run_loses_at_most_one_interval(tmp_path: Path, fault: str) -> None:
    for seed in range(2):
        outcome = kill_once(tmp_path / "run", seed, fault)
        assert outcome.problem == ""
    assert outcome.resumed_from >= 0


def test_a_killed_training_loses_at_most_one_interval(tmp_path: Path) -> None:
    for seed, kind in enumerate(("while saving", "crash", "ENOSPC")):
        outcome = kill_training(tmp_path, "run", seed, kind)
        assert outcome.problem == ""
    assert outcome.updates > 0
