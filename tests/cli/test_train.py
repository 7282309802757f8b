"""`warpzone train` on a run that exists: what it changes, what it leaves alone and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.small_runs import SMALL, small_config, small_run
from warpzone.cli.main import main
from warpzone.cli.train import _further, settings
from warpzone.run.presets import preset
from warpzone.run.progress import Progress
from warpzone.watch.metrics import read_metrics


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    small_run(folder, "--run-name", "done", "--total-updates", "2", "--stages", "1-1")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    kept = [folder / "config.json", *(folder / "checkpoints").iterdir(), *folder.glob("videos/*")]
    return {path.name: path.read_bytes() for path in kept}


def test_a_resume_that_does_nothing_changes_nothing_and_says_so(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(runs / "done")
    run = ["train", "--run-name", "done", "--runs-dir", str(runs), "--record-video", "--plain"]
    assert main([*run, "--stages", "2-2", "--total-updates", "1"]) == 0
    assert contents(runs / "done") == before
    said = capsys.readouterr().out
    assert "[train] changed since the last session: " in said
    assert "stages 1-1 -> 2-2" in said
    assert (
        "the run has reached its limit, nothing was trained: the run and its settings are as they were"
        in said
    )


def test_other_stages_need_a_name_where_none_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path, "--run-name", "mario", "--total-updates", "1", "--stages", "1-1")
    before = contents(tmp_path / "mario")
    run = ["train", *SMALL, "--runs-dir", str(tmp_path), "--plain", "--total-updates", "2", "--stages", "1-2"]
    assert main(run) == 2
    assert "'mario' is of stages 1-1: give this one a name (--run-name NAME)" in capsys.readouterr().err
    assert contents(tmp_path / "mario") == before
    assert main([*run, "--run-name", "mario"]) == 0
    assert "stages 1-1 -> 1-2" in capsys.readouterr().out
    assert contents(tmp_path / "mario") != before


def test_another_reward_function_needs_a_name_where_none_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path, "--run-name", "mario", "--total-updates", "1")
    before = contents(tmp_path / "mario")
    (tmp_path / "own.py").write_text("def nothing(before, after):\n    return 0.0 * after['x_pos']\n")
    run = ["train", *SMALL, "--runs-dir", str(tmp_path), "--plain", "--total-updates", "2"]
    own = [*run, "--reward-function", f"{tmp_path / 'own.py'}:nothing"]
    assert main(own) == 2
    said = capsys.readouterr().err
    assert "'mario' was trained with the built-in rewards: give this one a name (--run-name NAME)" in said
    assert contents(tmp_path / "mario") == before
    assert main([*own, "--run-name", "mario"]) == 0
    # From then on it is that run's own reward.
    assert main([*own, "--total-updates", "3"]) == 0


def test_the_resume_that_is_offered_goes_beyond_what_is_done(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["train", "--run-name", "done", "--runs-dir", str(runs), "--plain", "--total-updates", "1"]) == 0
    )
    assert "--total-updates 3" in capsys.readouterr().out
    short = small_config(runs, "--time-limit", "0.5")
    assert _further(short, Progress(stopped_s=30.6)) == " --time-limit 1"


@pytest.mark.parametrize("what", ["stages", "levels"])
def test_generated_levels_are_said_to_need_another_preset(
    runs: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    chosen = {"stages": "2-2", "levels": "4"}[what]
    run = ["train", *SMALL, "--run-name", what, "--runs-dir", str(runs), "--plain", "--total-updates", "1"]
    assert main([*run, f"--{what}", chosen]) == 0
    assert ("learns little on generated levels" in capsys.readouterr().out) == (what == "levels")


def test_a_resumed_run_that_learns_keeps_its_new_settings(runs: Path) -> None:
    outcome = small_run(runs, "--run-name", "grown", "--total-updates", "1")
    assert outcome.updates == 1
    resumed = small_run(runs, "--run-name", "grown", "--total-updates", "3", "--stages", "1-2")
    assert resumed.updates == 2
    config = json.loads((runs / "grown" / "config.json").read_text())
    assert config["run"]["total_updates"] == 3
    assert config["stage"]["stages"] == "1-2"


def test_eval_and_record_say_which_checkpoint_plays(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_run = ["--checkpoint", "done", "--runs-dir", str(runs)]
    assert main(["eval", *of_run, "--episodes", "1", "--mode", "greedy"]) == 0
    assert main(["record", *of_run, "--out", str(tmp_path / "a.gif"), "--tries", "1", "--dry-run"]) == 0
    said = "".join(capsys.readouterr())
    file = runs / "done" / "checkpoints" / "latest.pt"
    decisions = json.loads(file.with_suffix(".json").read_text())["global_step"]
    for command in ("eval", "record"):
        assert f"[{command}] playing {file} (update 2, {decisions:,} decisions)" in said


def test_stages_from_the_environment_are_recorded_one_by_one_as_with_the_flag(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = ["record", "--checkpoint", "done", "--runs-dir", str(runs), "--dry-run"]
    monkeypatch.chdir(tmp_path)
    assert main([*record, "--stages", "1-1,1-2"]) == 0
    by_flag = capsys.readouterr().out
    assert by_flag == "[record] 1-1 of done to done_1-1.mp4\n[record] 1-2 of done to done_1-2.mp4\n"
    monkeypatch.setenv("WARPZONE_STAGES", "1-1,1-2")
    assert main(record) == 0
    assert capsys.readouterr().out == by_flag
    assert main([*record, "--stage", "4-1"]) == 0
    assert capsys.readouterr().out == "[record] 4-1 of done to done_4-1.mp4\n"
    assert main([*record, "--out", "one.mp4"]) == 2
    assert "there are 2 stages: name a folder" in capsys.readouterr().err


def test_a_variable_that_says_no_does_not_start_a_fresh_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ["--run-name", "done", "--runs-dir", str(runs)]
    saved = json.loads((runs / "done" / "config.json").read_text())["collect"]["num_envs"]
    for no in ("0", "False"):
        monkeypatch.setenv("WARPZONE_FRESH", no)
        assert settings(here).collect.num_envs == saved != preset("auto").collect.num_envs
    monkeypatch.setenv("WARPZONE_FRESH", "1")
    assert settings(here).collect.num_envs == preset("auto").collect.num_envs


def test_a_target_that_cant_be_shown_is_said_and_a_video_that_cant_be_written_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "videos").write_text("no folder")
    flags = [*SMALL, "--runs-dir", str(tmp_path), "--run-name", "run", "--plain", "--total-updates", "1"]
    assert main(["train", *flags, "--until-clear-rate", "0.99", "--record-video"]) == 0
    said = capsys.readouterr().out
    assert "256 fresh episodes can't show 99.0% with 95% confidence" in said
    assert "[train][warn] no video: " in said
    assert "all updates are done" in said


def test_clear_rates_of_stages_that_are_no_longer_trained_are_forgotten(tmp_path: Path) -> None:
    limited = ["--run-name", "moved", "--step-limit", "20"]
    small_run(tmp_path, *limited, "--total-updates", "2", "--stages", "1-1")
    assert list(read_metrics(tmp_path / "moved")[-1]["clear_rate"]) == ["1-1"]
    small_run(tmp_path, *limited, "--total-updates", "4", "--stages", "1-2")
    assert list(read_metrics(tmp_path / "moved")[-1]["clear_rate"]) == ["1-2"]
