"""A new run that begins with the weights of another agent."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpzone.agents.agent import read_weights
from warpzone.checkpoints.saving import save_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.cli.export import run as export
from warpzone.errors import CheckpointError

from .small_runs import Quiet, saved_state, small_run

STILL = ("--learning-rate", "1e-30", "--total-updates", "1")
"""One update that moves no weight."""


@pytest.mark.parametrize("learner", ["native", "torch"])
@pytest.mark.parametrize("form", ["run", "checkpoint", "weights file"])
def test_a_new_run_has_the_weights_and_nothing_else(learner: str, form: str, tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "3", "--learner", learner)
    checkpoint = tmp_path / "a" / "checkpoints" / "latest.pt"
    agent = tmp_path / "agent.safetensors"
    export([str(tmp_path / "a"), "--format", "safetensors", "--out", str(agent)])
    given = {"run": "a", "checkpoint": str(checkpoint), "weights file": str(agent)}[form]

    display = Quiet()
    flags = ("--run-name", "b", "--learner", learner, "--seed", "7")
    outcome = small_run(tmp_path, *flags, *STILL, "--begin-with", given, display=display)

    assert f"[train] starting from the weights of {given}" in display.lines
    assert (outcome.progress.update, outcome.progress.global_step) == (1, 8 * 16)
    wanted, _ = read_weights(agent if form == "weights file" else checkpoint)
    found = saved_state(tmp_path / "b")["learner"]["policy"]
    assert wanted.keys() == found.keys()
    for name, tensor in wanted.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-12)
    other = small_run(tmp_path, "--run-name", "c", "--learner", learner, "--seed", "7", *STILL)
    fresh = saved_state(other.folder)["learner"]["policy"]
    assert any(not torch.equal(fresh[name], found[name]) for name in found)


def test_a_run_that_exists_keeps_its_own_weights(tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "2")
    small_run(tmp_path, "--run-name", "b", "--total-updates", "2", "--seed", "7")
    before = saved_state(tmp_path / "b")["learner"]["policy"]
    display = Quiet()
    still = ("--learning-rate", "1e-30", "--total-updates", "3")
    small_run(tmp_path, "--run-name", "b", *still, "--begin-with", "a", display=display)
    assert not any("starting from" in line for line in display.lines)
    after = saved_state(tmp_path / "b")["learner"]["policy"]
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=1e-12)


def test_weights_of_another_network_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "1")
    with pytest.raises(CheckpointError, match="another architecture"):
        small_run(tmp_path, "--run-name", "b", "--action-type", "complex", "--begin-with", "a", *STILL)
    with pytest.raises(CheckpointError, match="no checkpoint or run"):
        small_run(tmp_path, "--run-name", "b", "--begin-with", "nowhere", *STILL)
    assert not (tmp_path / "b").exists()


def test_a_checkpoint_that_is_of_no_training_run_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, "other", {"weights": 1}, CheckpointMeta())
    with pytest.raises(CheckpointError, match="holds no learner"):
        small_run(tmp_path, "--run-name", "b", "--begin-with", str(path), *STILL)
    assert not (tmp_path / "b").exists()
