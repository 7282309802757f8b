"""A run that loses what it had learned goes back to its best weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint
from warpzone.errors import ConfigError
from warpzone.run.hooks import GoBack

from .small_runs import Quiet, differences, saved_state, small_config, small_run

SHORT = ("--run-name", "a", "--step-limit", "4", "--go-back", "0.5")
"""Episodes of four decisions: 32 in each update, all of which fail."""


def run_with_best(tmp_path: Path, rate: float, *flags: str) -> Path:
    """A run of three updates whose weights are taken for the best, with this clear rate."""
    folder = small_run(tmp_path, *SHORT, *flags, "--total-updates", "3").folder
    latest = load_checkpoint(folder / "checkpoints" / "latest.pt")
    save_checkpoint(
        folder / "checkpoints", "best", latest.state, replace(latest.meta, clear_rate={"1-1": rate})
    )
    return folder


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_it_has_the_best_weights_again_and_half_the_learning_rate(learner: str, tmp_path: Path) -> None:
    folder = run_with_best(tmp_path, 0.9, "--learner", learner)
    best, display = saved_state(folder), Quiet()
    # The window of a hundred episodes is full in the fourth update.
    small_run(tmp_path, *SHORT, "--learner", learner, "--total-updates", "4", display=display)
    line = "[train] clear rate 0% after 90%: back to the best weights, half the learning rate"
    assert display.lines.count(line) == 1
    state = saved_state(folder)
    assert differences(state["learner"]["policy"], best["learner"]["policy"]) == []
    moments = [saved["learner"]["optimizer"]["state"] for saved in (state, best)]
    assert differences(*moments) == []
    assert state["learner"]["adaptation"]["lr_scale"] == 0.5
    assert (state["learner"]["version"], state["progress"]["update"]) == (4, 4)
    assert state["episodes"]["cleared"] == {}
    assert state["episodes"]["episodes"] > best["episodes"]["episodes"]
    # It goes on from there: with the learning rate halved, until the window is full again.
    small_run(tmp_path, *SHORT, "--learner", learner, "--total-updates", "5", display=display)
    assert display.records[-1]["learning_rate"] < 0.51 * display.records[-2]["learning_rate"]


def test_it_goes_back_once_for_each_best(tmp_path: Path) -> None:
    """Weights that were saved while they were being lost show nothing of their clear rate."""
    folder, display = run_with_best(tmp_path, 0.9), Quiet()

    def returns() -> int:
        return sum("back to the best weights" in line for line in display.lines)

    # The window of episodes is full in every fourth update; all fail.
    small_run(tmp_path, *SHORT, "--total-updates", "9", display=display)
    assert returns() == 1
    # A resumed run knows of it.
    small_run(tmp_path, *SHORT, "--total-updates", "14", display=display)
    assert returns() == 1
    assert saved_state(folder)["learner"]["adaptation"]["lr_scale"] == 0.5
    # A new best may be lost, too. It never learns slower than at a quarter.
    for lost, updates in ((2, "18"), (3, "22")):
        latest = load_checkpoint(folder / "checkpoints" / "latest.pt")
        save_checkpoint(
            folder / "checkpoints", "best", latest.state, replace(latest.meta, clear_rate={"1-1": 0.9})
        )
        small_run(tmp_path, *SHORT, "--total-updates", updates, display=display)
        assert returns() == lost
        assert saved_state(folder)["learner"]["adaptation"]["lr_scale"] == 0.25
    rates = [line.rpartition(", ")[2] for line in display.lines if "back to the best weights" in line]
    assert rates == ["half the learning rate", "half the learning rate", "the same learning rate"]


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ({"2-2": 0.8}, False),  # of the other stage there are too few episodes yet
        ({"2-2": 0.8, "7-2": 0.0}, False),
        ({"2-2": 0.3, "7-2": 0.4}, True),
    ],
)
def test_what_counts_is_the_mean_over_all_stages(now: dict[str, float], due: bool) -> None:
    session: Any = SimpleNamespace(
        config=SimpleNamespace(run=SimpleNamespace(go_back=0.5)), stages=["2-2", "7-2"],
        progress=SimpleNamespace(clear_rate=now, went_back_at=0), best_rates=lambda: {"2-2": 0.8, "7-2": 0.7},
        run=SimpleNamespace(checkpoints=SimpleNamespace(best_update=1)),
    )  # fmt: skip
    assert GoBack(session).due() == due


@pytest.mark.parametrize(
    ("rate", "flags"), [(0.1, ()), (0.9, ("--go-back", "0")), (0.9, ("--random-start", "1"))]
)
def test_it_goes_on_where_there_is_little_to_lose_or_nothing_to_compare(
    rate: float, flags: tuple[str, ...], tmp_path: Path
) -> None:
    folder, display = run_with_best(tmp_path, rate), Quiet()
    small_run(tmp_path, *SHORT, *flags, "--total-updates", "4", display=display)
    assert not any("best weights" in line for line in display.lines)
    assert saved_state(folder)["learner"]["adaptation"]["lr_scale"] == 1.0


class Losing(Quiet):
    """Loses the best checkpoint just before it is wanted."""

    def __init__(self, best: Path) -> None:
        super().__init__()
        self.best = best

    def update(self, record: dict[str, Any]) -> None:
        super().update(record)
        self.best.unlink(missing_ok=True)


def test_a_best_checkpoint_that_is_lost_is_no_reason_to_stop(tmp_path: Path) -> None:
    folder = run_with_best(tmp_path, 0.9)
    display = Losing(folder / "checkpoints" / "best.pt")
    outcome = small_run(tmp_path, *SHORT, "--total-updates", "5", display=display)
    assert outcome.progress.update == 5
    assert any(line.startswith("[train][warn] can't go back to the best weights") for line in display.lines)


def test_several_learners_can_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--go-back is for one learner"):
        small_config(tmp_path, *SHORT, "--gpus", "2", "--learner", "torch").check()
