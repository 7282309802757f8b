"""`warpzone bench env` checks before it times, and says what it measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from warpzone.cli import bench_env
from warpzone.cli.bench_env import BASE, run
from warpzone.errors import ConfigError

pytest.importorskip("nes_py")


def test_every_side_is_timed_and_compared_round_by_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "results.json"
    words = ["--rounds", "2", "--seconds", "0.02", "--num-envs", "4", "--threads", "2", "--no-memory"]
    assert run([*words, "--as-json", "--out", str(out)]) == 0
    results = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text()) == results
    assert len(results["frames_per_s"]) == 7
    assert all(len(rates) == 2 and min(rates) > 0 for rates in results["frames_per_s"].values())
    assert results["times_nes_py"][BASE] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert results["times_nes_py"]["Machine.step, nothing drawn"]["median"] > 10


def test_a_different_game_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        ram = np.full(0x800, 77, np.uint8)

        def _frame_advance(self, held: int) -> None:
            pass

    monkeypatch.setattr(bench_env, "nes_py_console", Other)
    with pytest.raises(RuntimeError, match="do not play the same game: they part in frame 0"):
        run(["--rounds", "1", "--seconds", "0.01", "--num-envs", "1", "--no-memory"])


def test_without_nes_py_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_env, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install nes-py"):
        run(["--rounds", "1"])


@pytest.mark.parametrize(
    "words", [["--rounds", "0"], ["--num-envs", "0"], ["--seconds", "0"], ["--seconds", "nan"]]
)
def test_settings_out_of_range_are_refused(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"--num-envs and --rounds must be at least 1"):
        run(words)


def test_a_dry_run_prints_the_settings_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--dry-run", "--rounds", "9"]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"] == 9
