"""`warpzone doctor`: red and green lines, trials with limits, and their sums."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from warpzone.cli import doctor_trials
from warpzone.cli.doctor import run
from warpzone.cli.doctor_checks import (
    Check,
    check_compiler,
    check_nes_py,
    check_python,
    check_rom,
    check_write_access,
    print_checks,
)
from warpzone.cli.doctor_trial import TrialSettings, run_trial
from warpzone.cli.doctor_trials import read_report, summarise
from warpzone.envs import vector
from warpzone.errors import ConfigError


def test_a_failed_check_is_one_line_with_its_fix(capsys: pytest.CaptureFixture[str]) -> None:
    checks = [Check("rom", False, "none found", "get one"), Check("python", True, "3.11", "unused")]
    assert print_checks(checks, Console(width=200)) == 1
    assert capsys.readouterr().out.splitlines() == ["FAIL rom: none found -> get one", "ok   python: 3.11"]


def test_all_green_is_success() -> None:
    assert print_checks([Check("python", True, "3.11")], Console(quiet=True)) == 0


def test_a_missing_compiler_and_rom_are_red(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    assert not check_compiler(lambda name: None).good
    assert check_compiler(lambda name: "/usr/bin/c++").found == "/usr/bin/c++"
    monkeypatch.setenv("WARPZONE_ROM", str(tmp_path / "none.nes"))
    assert not check_rom().good


def test_versions_that_do_not_belong_together_are_red() -> None:
    assert check_nes_py("8.2.1", "7.4.0", "2.4.0").found.endswith("patched in memory for NumPy 2.4.0")
    assert check_nes_py("9.0.1", "9.1.0", "2.4.0").found == "nes-py 9.0.1, gym-super-mario-bros 9.1.0"
    assert not check_nes_py("9.0.1", "7.4.0", "2.4.0").good
    assert not check_nes_py(None, "7.4.0", "2.4.0").good
    assert not check_python((3, 9)).good


def test_a_folder_that_cannot_be_written_is_red(tmp_path: Path) -> None:
    assert check_write_access("runs", tmp_path).good
    assert not check_write_access("runs", tmp_path / "missing").good


def test_trials_are_appended_and_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--backend", "native", "--num-envs", "2", "--trials-per-process", "2", "--timeout", "120"]
    assert run(["sync", "--trials", "2", *arguments]) == 0
    assert run(["sync", "--trials", "1", *arguments]) == 0
    records = read_report("env_stability_report.jsonl")
    assert [record["success"] for record in records] == [True] * 3
    assert [record["seed"] for record in records] == [0, 1, 0]
    assert all(record["construct_s"] > 0 and record["step_s"] > 0 for record in records)
    capsys.readouterr()
    assert run(["report"]) == 0
    assert "100.0%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("import time; time.sleep(60)", "timeout"),
        ("raise RuntimeError('no emulator')", "RuntimeError: no emulator"),
    ],
)
def test_a_trial_that_hangs_or_fails_is_recorded_and_its_diagnostics_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    popen = doctor_trials.subprocess.Popen

    def instead(command: list[str], **options: Any) -> Any:
        folder = json.loads(command[-1])["diagnostics"]
        mark = f"open({folder + '/worker_000_pid1.jsonl'!r}, 'w').write('{{}}');"
        return popen([sys.executable, "-c", mark + script], **options)

    monkeypatch.setattr(doctor_trials.subprocess, "Popen", instead)
    timeout_s = "5" if error == "timeout" else "60"
    assert run(["async", "--trials", "1", "--timeout", timeout_s]) == 1
    (record,) = read_report("env_stability_report.jsonl")
    assert (record["success"], record["error"]) == (False, error)
    kept = Path(record["diagnostics"])
    assert kept.parts[0] == "reports"
    assert (kept / "worker_000_pid1.jsonl").read_text() == "{}"
    assert json.loads((kept / "trial.json").read_text())["error"] == error


def test_environments_that_do_not_move_fail_their_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen:
        def __init__(self, *args: object, **options: object) -> None:
            pass

        def reset(self, seed: int) -> tuple[None, dict[str, np.ndarray]]:
            return None, {"x_pos": np.array([40])}

        def step(self, actions: np.ndarray) -> tuple[None, None, None, None, dict[str, np.ndarray]]:
            return None, None, None, None, {"x_pos": np.array([40])}

        def close(self) -> None:
            pass

    monkeypatch.setattr(vector, "MarioVectorEnv", Frozen)
    with pytest.raises(RuntimeError, match="moved nobody"):
        run_trial(TrialSettings(num_envs=1, steps=1))


def test_the_summary_counts_by_backend_mode_and_size() -> None:
    records = [
        {
            "backend": "nes-py",
            "mode": "async",
            "num_envs": 8,
            "success": True,
            "construct_s": float(s),
            "total_s": 1.0,
        }
        for s in range(1, 11)
    ] + [
        {
            "backend": "nes-py",
            "mode": "async",
            "num_envs": 8,
            "success": False,
            "error": "timeout",
            "total_s": 9.0,
        }
    ]
    (row,) = summarise(records)
    assert (row["trials"], row["success"]) == (11, 10)
    assert row["success_rate"] == pytest.approx(10 / 11)
    assert (row["construct_s_p50"], row["construct_s_p90"], row["construct_s_p99"]) == (5.0, 9.0, 10.0)
    assert row["errors"] == {"timeout": 1}


def test_a_dry_run_prints_the_settings_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["async", "--trials", "7", "--dry-run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["mode"], printed["trials"], printed["backend"]) == ("async", 7, "nes-py")
    assert not list(tmp_path.iterdir())


def test_bad_words_and_missing_reports_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="sync, async, report and cluster"):
        run(["cure"])
    with pytest.raises(ConfigError, match="threads, not workers"):
        run(["async", "--backend", "native"])
    with pytest.raises(ConfigError, match="no report"):
        run(["report"])
