"""An agent that is given more buttons plays nearly as before and goes on learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.run.small_runs import Quiet, saved_state, small_run
from warpzone.agents.agent import load_agent
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.cli.checkpoints import run
from warpzone.errors import CheckpointError, ConfigError


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_a_widened_agent_plays_nearly_as_before_and_goes_on(learner: str, tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "3", "--learner", learner)
    wide = tmp_path / "wide.pt"
    assert run(["widen", str(tmp_path / "a"), "--action-type", "complex", "--out", str(wide)]) == 0

    old = load_agent(str(tmp_path / "a" / "checkpoints" / "latest.pt"), tmp_path, torch.device("cpu"))
    new = load_agent(str(wide), tmp_path, torch.device("cpu"))
    pictures = np.random.default_rng(0).integers(0, 256, (16, *old.view.shape), np.uint8)
    for agent in (old, new):
        agent.begin(16, 0, greedy=True)
    starts = np.ones(16, np.bool_)
    _, before, value_before = old.act(pictures, starts)
    _, after, value_after = new.act(pictures, starts)
    assert (before.shape[1], after.shape[1]) == (7, 12)
    torch.testing.assert_close(value_after, value_before)
    # Among themselves the known actions are as likely as they were; a new one is less likely than their mean.
    known = after[:, :7] / after[:, :7].sum(1, keepdim=True)
    torch.testing.assert_close(known, before, rtol=1e-4, atol=1e-6)
    assert (after[:, 7:] < after[:, :7].mean(1, keepdim=True)).all()

    display = Quiet()
    outcome = small_run(
        tmp_path, "--run-name", "b", "--total-updates", "5", "--learner", learner,
        "--resume", str(wide), "--action-type", "complex", display=display,
    )  # fmt: skip
    assert outcome.progress.update == 5
    moments = saved_state(tmp_path / "b")["learner"]["optimizer"]["state"].values()
    assert sum(entry["exp_avg"].shape[0] == 12 for entry in moments) == 2


def test_what_can_not_be_widened_is_refused_in_a_sentence(tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "1", "--action-type", "complex")
    run_a, out = str(tmp_path / "a"), str(tmp_path / "wide.pt")
    for smaller_or_same in ("simple", "complex"):
        with pytest.raises(ConfigError, match="not the first of"):
            run(["widen", run_a, "--action-type", smaller_or_same, "--out", out])
    run(["widen", run_a, "--action-type", "extended", "--out", out])
    assert load_checkpoint(out).meta.architecture["num_actions"] == 20
    with pytest.raises(CheckpointError, match="exists"):
        run(["widen", run_a, "--action-type", "extended", "--out", out])
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        run(["widen", str(tmp_path / "nowhere"), "--action-type", "extended", "--out", out])
