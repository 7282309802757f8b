"""`warpzone explore` on the real game."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpzone.cli.main import main
from warpzone.starts import exploration
from warpzone.starts.trails import Trail, further_trails, load_trail, save_trail


@pytest.fixture(autouse=True)
def _first_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one will do: tests/starts looks on for a shorter one."""
    monkeypatch.setattr(exploration, "SEARCH_ON", 1)


def test_it_leaves_a_trail_and_does_not_look_for_one_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["explore", "--stages", "1-1", "--seed", "3", "--out", str(tmp_path)]
    assert main(asked) == 0
    trail = load_trail(tmp_path, "1-1")
    assert trail is not None
    shown = capsys.readouterr().out
    assert f"1-1: a way of {trail.decisions} decisions, found after {trail.tried:,}" in shown
    assert "1 of 1 stages have a trail" in shown
    before = (tmp_path / "1-1.json").stat().st_mtime_ns
    assert main(asked) == 0
    assert (tmp_path / "1-1.json").stat().st_mtime_ns == before


def test_of_several_ways_the_shortest_is_the_trail_and_the_others_are_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--stages", "1-1", "--tries", "3", "--seed", "3", "--out", str(tmp_path)]) == 0
    found = [int(n) for n in re.findall(r"a way of (\d+) decisions", capsys.readouterr().out)]
    assert len(set(found)) == 3
    kept = load_trail(tmp_path, "1-1")
    assert kept is not None
    assert kept.decisions == min(found)
    assert [other.decisions for other in further_trails(str(tmp_path), kept, kept.rom_sha256)] == [
        decisions for decisions in found if decisions != min(found)
    ]


def test_a_stage_for_which_the_time_is_too_short_is_named_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--stages", "8-4", "--minutes", "0.001", "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "8-4: no trail found" in shown
    assert "0 of 1 stages have a trail" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--stages", "9-9"], "9-9"),
        (["--minutes", "0"], "--minutes must be more than 0"),
        (["--tries", "0"], "--tries at least 1"),
        (["--minutes", "nan"], "--minutes must be more than 0"),
        (["--threads", "-1"], "--threads can't be negative"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--out", str(tmp_path), *flags]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1


def test_a_trail_of_another_rom_is_not_taken_for_this_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_trail(Trail("1-1", "0" * 64, 4, 1, "RIGHT:4"), tmp_path)
    assert main(["explore", "--stages", "1-1", "--out", str(tmp_path)]) == 2
    assert "is of another ROM" in capsys.readouterr().err
