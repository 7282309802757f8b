"""`warpzone levels` shows, generates, checks, exports and imports levels, and refuses bad ones in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import warpzone
from warpzone import ConfigError, levels
from warpzone.cli.main import main
from warpzone.levels import Level, Object, ObjectKind
from warpzone.watch.play.cabinet import LEVEL, Cabinet


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_level_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    assert main(["levels", "show", "7", "--out", "seven.png"]) == 0
    assert Image.open("seven.png").size[1] == 208
    assert main(["levels", "show", "1-1", "--text"]) == 0
    assert "P" in capsys.readouterr().out


def test_levels_are_generated_as_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["levels", "generate", "--seed", "7", "--difficulty", "0.4", "--count", "2", "--out", "made"])
        == 0
    )
    assert levels.load("made/seed-7.json") == levels.generate(7, 0.4)
    assert main(["levels", "import", "made/seed-8.json"]) == 0
    assert "seed 8 at 0.4" in capsys.readouterr().out
    assert main(["levels", "generate", "--seed", "7", "--difficulty", "0.4", "--out", "one/mine.json"]) == 0
    assert levels.load("one/mine.json") == levels.generate(7, 0.4)
    # They are made one after the other, not all before the first is written.
    assert main(["levels", "generate", "--count", "1000000000", "--dry-run"]) == 0


def test_a_stage_is_exported_and_comes_back() -> None:
    assert main(["levels", "export", "4-1", "--out", "mine.json"]) == 0
    assert levels.load("mine.json") == levels.decode(warpzone.rom(), "4-1")
    assert main(["play", "--level", "mine.json", "--dry-run"]) == 0
    assert main(["play", "--level", "mine.json", "--stage", "4-2", "--dry-run"]) == 2


def test_check_says_whether_a_level_can_be_finished(capsys: pytest.CaptureFixture[str]) -> None:
    levels.save(Level([Object(ObjectKind.FLAGPOLE, 20), Object(ObjectKind.CASTLE, 24)]), "easy.json")
    levels.save(Level([Object(ObjectKind.BLOCK_COLUMN, 10, size=10)]), "wall.json")
    assert main(["levels", "check", "easy.json"]) == 0
    assert "a solution of" in capsys.readouterr().out
    assert main(["levels", "check", "wall.json", "--decisions", "640"]) == 1
    assert "no solution in 640 decisions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["show", "nothing.json"], "can't be read"),
        (["show", "bad.json"], "not a level"),
        (["play", "bad.json", "--dry-run"], "not a level"),
        (["generate", "--difficulty", "2"], "from 0 to 1"),
        (["generate", "--count", "0"], "at least 1"),
        (["generate", "--seed", str(2**62 - 1), "--count", "2"], "0 to 2^62 - 1"),
        (["show", "1-1", "--difficulty", "0.9"], "go with a seed"),
        (["export", "bad.json", "--style", "castle"], "go with a seed"),
        (["check", "bad.json", "--count", "3"], "goes with a seed"),
        (["export", "1-1", "--out", "no/such/folder.json"], "can't be written"),
        (["show", "1-1", "--out", "picture.xyz"], "can't be written"),
        (["frob"], "no command 'levels frob'"),
    ],
)
def test_bad_input_is_refused(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_text(json.dumps({"format": "something else"}))
    assert main(["levels", *argv]) == 2
    assert says in capsys.readouterr().err


def test_a_level_is_played_on_the_page_and_not_saved_as_a_replay() -> None:
    cabinet = Cabinet(warpzone.rom(), level=levels.generate(3, 0.2))
    assert cabinet.stages[:2] == [LEVEL, "1-1"]
    assert cabinet.stage == LEVEL
    cabinet.restart("2-1")
    assert cabinet.stage == "2-1"
    cabinet.restart(LEVEL)
    with pytest.raises(ConfigError, match="played on a level"):
        cabinet.recording()
    cabinet.close()
