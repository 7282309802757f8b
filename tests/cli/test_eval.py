"""`warpzone eval` in a log file, where no bar can be drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.run.small_runs import small_run
from warpzone.agents.evaluation import StageResult
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


@pytest.mark.parametrize(("stage", "width"), [("1-1", 80), ("levels-7000001-7000002@0.3", 90)])
def test_the_table_loses_nothing_where_the_terminal_is_narrow(
    stage: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    result = StageResult(
        stage=stage, episodes=31, clears=0, mean_return=0.0, mean_x=2300.0, max_x=3161, mean_steps=234.0,
        mean_steps_cleared=None, ends={"death": 29, "stalled": 2},
    )  # fmt: skip
    table = eval_command.result_table({"sampled": [result]}, eval_command.EvalConfig())
    Console(width=width).print(table)
    shown = capsys.readouterr().out
    assert "0.0% (0% to 11%)" in shown
    assert "death:29" in shown
    assert "2,300" in shown
    assert "…" not in shown
    assert all(len(line) <= width for line in shown.splitlines())
