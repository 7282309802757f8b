"""`warpzone eval` in a log file, where no bar can be drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.run.small_runs import small_run
from warpzone.cli import eval as eval_command
from warpzone.cli import progress


def test_without_a_terminal_lines_say_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path, "--run-name", "small", "--total-updates", "1")
    argv = ["--checkpoint", "small", "--runs-dir", str(tmp_path), "--stages", "1-1,1-2", "--threads", "1"]
    argv += ["--episodes", "2", "--mode", "sampled"]
    capsys.readouterr()
    assert eval_command.run(argv) == 0
    quick = capsys.readouterr().out  # over before the first line is due
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    assert eval_command.run(argv) == 0
    lines = re.findall(r"\[eval\] sampled (\S+): (\d) of 4 episodes", capsys.readouterr().out)
    assert lines[-1] == ("1-2", "4")
    assert ("1-1", "2") in lines
    assert "episodes\n" not in quick
