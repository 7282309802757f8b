"""How a run ends: the target on fresh episodes, numbers that are not finite, sessions that learn nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from warpzone.agents.evaluation import StageResult
from warpzone.checkpoints.saving import load_checkpoint, read_meta
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.cli.train import _summarise
from warpzone.learn.learner import Learner
from warpzone.run import hooks
from warpzone.run.config import TrainConfig
from warpzone.run.folder import RunFolder
from warpzone.run.stopping import StopFlag
from warpzone.watch.episodes import EpisodeLog

from .small_runs import small_config, small_run


def latest(runs: Path) -> Path:
    return runs / "mario" / "checkpoints" / "latest.pt"


def spoiled(monkeypatch: pytest.MonkeyPatch, at_update: int, *, loss: bool) -> None:
    """Make the weights NaN after an update, and its loss too if `loss`."""
    update = Learner.update

    def spoil(self: Learner, rollout: Any) -> dict[str, float]:
        learned = update(self, rollout)
        if self.version == at_update:
            with torch.no_grad():
                next(iter(self.policy.parameters())).fill_(torch.nan)
            if loss:
                learned["loss_total"] = float("nan")
        return learned

    monkeypatch.setattr(Learner, "update", spoil)


@pytest.mark.parametrize("loss", [True, False])
def test_a_run_that_diverges_stops_and_names_the_last_finite_checkpoint(
    loss: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--latest-every-updates", "1")
    small_run(tmp_path, "--total-updates", "2", *flags)
    spoiled(monkeypatch, at_update=4, loss=loss)
    outcome = small_run(tmp_path, "--total-updates", "9", *flags)
    assert (outcome.exit_code, outcome.progress.update) == (1, 4)
    assert f"the {'loss' if loss else 'weights'} became non-finite after update 4" in outcome.reason
    assert f"{latest(tmp_path)} (update 3)" in outcome.reason
    saved = load_checkpoint(latest(tmp_path))
    assert saved.meta.global_update == 3
    assert all(torch.isfinite(w).all() for w in saved.of_training()["learner"]["policy"].values())


def test_weights_that_are_not_finite_at_the_last_save_do_not_replace_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_run(tmp_path, "--total-updates", "1")
    spoiled(monkeypatch, at_update=2, loss=False)
    outcome = small_run(tmp_path, "--total-updates", "2")
    assert outcome.exit_code == 1
    assert "the weights became non-finite after update 2" in outcome.reason
    assert load_checkpoint(latest(tmp_path)).meta.global_update == 1


def test_nothing_is_played_with_weights_that_are_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled(monkeypatch, at_update=2, loss=False)
    flags = ("--latest-every-updates", "2", "--video-interval", "2")
    outcome = small_run(tmp_path, "--total-updates", "9", *flags)
    assert (outcome.exit_code, outcome.progress.update) == (1, 2)
    assert not (tmp_path / "mario" / "videos").exists()


def test_settings_with_which_the_first_update_diverges_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_run(tmp_path, "--total-updates", "1")
    before = (tmp_path / "mario" / "config.json").read_bytes()
    spoiled(monkeypatch, at_update=2, loss=True)
    outcome = small_run(tmp_path, "--total-updates", "9", "--learning-rate", "0.05")
    assert outcome.exit_code == 1
    assert (tmp_path / "mario" / "config.json").read_bytes() == before


def test_a_session_that_learns_nothing_leaves_the_checkpoints_as_they_were(tmp_path: Path) -> None:
    small_run(tmp_path, "--total-updates", "2")
    before = {path: path.read_bytes() for path in latest(tmp_path).parent.iterdir()}
    outcome = small_run(tmp_path, "--total-updates", "1", "--stages", "2-2")
    assert outcome.reason == "all updates are done"
    assert {path: path.read_bytes() for path in latest(tmp_path).parent.iterdir()} == before


def result(stage: str, clears: int, episodes: int = 256) -> StageResult:
    return StageResult(stage, episodes, clears, 1.0, 3000.0, 3161, 250.0, None, {"flag": clears})


def judged(monkeypatch: pytest.MonkeyPatch, clears: dict[str, list[int]]) -> list[str]:
    """Let training episodes clear always and evaluations as given; the stages evaluated, in order."""
    asked: list[str] = []

    def evaluate(agent: Any, stage: str, trial: Any, **options: Any) -> StageResult:
        asked.append(stage)
        return result(stage, clears[stage].pop(0))

    monkeypatch.setattr(hooks, "evaluate_stage", evaluate)
    rates = dict.fromkeys(clears, 1.0)
    monkeypatch.setattr(EpisodeLog, "clear_rates", lambda self, min_episodes=1: rates)
    return asked


TARGET = ("--until-clear-rate", "0.9", "--eval-episodes", "256")


def test_the_target_is_met_by_the_lower_end_of_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 240 of 256 are 93.8 %, but the interval begins at 90.1 %; with 239 it begins at 89.7 %.
    per_window = 100 * 250 // (8 * 16) + 1
    asked = judged(monkeypatch, {"1-1": [239, 240]})
    outcome = small_run(tmp_path, *TARGET, "--total-updates", str(per_window + 3))
    assert outcome.reason == "the target clear rate was reached"
    assert asked == ["1-1", "1-1"]
    # After the first attempt a whole window of new episodes has to pass.
    assert outcome.progress.update == 1 + per_window
    assert outcome.confirmed["1-1"].clears == 240


def best(runs: Path) -> CheckpointMeta:
    return read_meta(runs / "mario" / "checkpoints" / "best.pt")


def test_the_agent_that_passed_stays_the_best_until_another_does_better_on_fresh_episodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hooks, "DECISIONS_PER_EPISODE", 1)
    monkeypatch.setattr(hooks, "WINDOW_EPISODES", 8 * 16)  # a window is two updates
    judged(monkeypatch, {"1-1": [243, 242, 245]})
    every = ("--latest-every-updates", "1")
    small_run(tmp_path, *TARGET, *every, "--total-updates", "9")
    assert (best(tmp_path).global_update, best(tmp_path).fresh_clear_rate) == (1, {"1-1": 243 / 256})

    # Trained on: its clear rate in training is 100 %, the evaluations at 3 and 5 fall short of the higher target.
    further = ("--until-clear-rate", "0.94", "--eval-episodes", "256", *every)
    small_run(tmp_path, *further, "--total-updates", "4")
    assert best(tmp_path).global_update == 1
    assert load_checkpoint(latest(tmp_path)).meta.global_update == 4
    outcome = small_run(tmp_path, *further, "--total-updates", "6")
    assert (outcome.reason, outcome.progress.update) == ("all updates are done", 6)
    assert (best(tmp_path).global_update, best(tmp_path).fresh_clear_rate) == (5, {"1-1": 245 / 256})
    _summarise(small_config(tmp_path), outcome, Console())
    line = "[train] best checkpoint: update 5, the best on fresh episodes (1-1 95.7%); the newest: "
    assert line + str(latest(tmp_path)) in capsys.readouterr().out


def test_an_evaluation_that_fell_short_does_not_choose_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(monkeypatch, {"1-1": [200]})
    small_run(tmp_path, *TARGET, "--total-updates", "2")
    assert (best(tmp_path).global_update, best(tmp_path).fresh_clear_rate) == (2, {})


def test_each_failed_evaluation_doubles_the_wait_for_the_next_also_over_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "DECISIONS_PER_EPISODE", 1)
    monkeypatch.setattr(hooks, "WINDOW_EPISODES", 8 * 16)  # a window is two updates
    monkeypatch.setattr(hooks, "MOST_WINDOWS", 4)
    judged(monkeypatch, {"1-1": []})
    evaluated: list[int] = []

    def evaluate(agent: Any, stage: str, trial: Any, **options: Any) -> StageResult:
        evaluated.append(agent.meta.global_update)
        return result(stage, 0)

    monkeypatch.setattr(hooks, "evaluate_stage", evaluate)
    small_run(tmp_path, *TARGET, "--total-updates", "5")
    small_run(tmp_path, *TARGET, "--total-updates", "24")
    assert evaluated == [1, 3, 7, 15, 23]


def test_every_stage_has_to_reach_the_target_and_the_first_that_falls_short_ends_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = judged(monkeypatch, {"1-1": [256], "1-2": [200], "1-3": [256]})
    outcome = small_run(tmp_path, *TARGET, "--stages", "1-1,1-2,1-3", "--total-updates", "2")
    assert outcome.reason == "all updates are done"
    assert asked == ["1-1", "1-2"]


def test_an_evaluation_that_is_broken_off_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(monkeypatch, {"1-1": []})

    def stopped(agent: Any, stage: str, trial: Any, *, should_stop: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert should_stop()

    monkeypatch.setattr(hooks, "evaluate_stage", stopped)
    outcome = small_run(tmp_path, *TARGET, "--total-updates", "3")
    assert (outcome.exit_code, outcome.progress.evaluated_at, outcome.confirmed) == (130, 0, {})


def test_no_evaluation_is_made_while_training_episodes_fall_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = judged(monkeypatch, {"1-1": []})
    monkeypatch.setattr(EpisodeLog, "clear_rates", lambda self, min_episodes=1: {"1-1": 0.93})
    small_run(tmp_path, *TARGET, "--total-updates", "2")
    assert asked == []


def test_a_file_that_cannot_be_closed_does_not_keep_the_others_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(TrainConfig(), tmp_path / "run", StopFlag())
    closing = folder.resources.close

    def close_badly() -> None:
        closing()
        raise OSError("the disk is gone")

    monkeypatch.setattr(folder.resources, "close", close_badly)
    with pytest.raises(OSError, match="the disk is gone"):
        folder.close()
    with pytest.raises(ValueError, match="is closed"):
        folder.metrics.write({})
    RunFolder(TrainConfig(), tmp_path / "run", StopFlag()).close()
