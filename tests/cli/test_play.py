"""`warpzone play` says what it would do, and what was played becomes a film."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import warpzone
from warpzone.cli.commands import flags_of_commands
from warpzone.cli.main import main
from warpzone.envs.actions import parse_buttons
from warpzone.envs.button_env import ButtonEnv
from warpzone.envs.replays import recorded


def save_replay(path: Path, frames: int = 40, region: str = "ntsc") -> Path:
    """A little way to the right on 1-1."""
    buttons = bytes([parse_buttons("RIGHT+B")]) * frames
    env = ButtonEnv("1-1", warpzone.rom(), region=region)
    for held in buttons:
        env.press(held)
    path.write_bytes(recorded(env, "1-1", buttons, warpzone.rom(), region, False).to_json())
    return path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_dry_run_says_where_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--stage", "4-2", "--port", "8500", "--dry-run"]) == 0
    assert capsys.readouterr().out == "would play 4-2 at http://127.0.0.1:8500/\n"
    assert list(tmp_path.iterdir()) == []


def test_flags_can_be_set_by_the_environment_and_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPZONE_STAGE", "2-1")
    assert main(["play", "--dry-run"]) == 0
    assert "would play 2-1" in capsys.readouterr().out
    assert {"--stage", "--start", "--out", "--rom", "--region", "--host", "--port"} <= {
        flag.name for flag in flags_of_commands()["play"]
    }


def test_a_damaged_start_and_an_out_that_is_a_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_replay(tmp_path / "a.start.json")
    assert main(["play", "--start", "a.start.json", "--dry-run"]) == 0
    fields = json.loads(path.read_bytes())
    path.write_text(json.dumps({**fields, "rom_md5": "0" * 32}))
    assert main(["play", "--start", "a.start.json", "--dry-run"]) == 2
    assert "another ROM" in capsys.readouterr().err
    path.write_text(json.dumps({**fields, "ram_sha256": "0" * 64}))
    assert main(["play", "--start", "a.start.json", "--port", "0"]) == 2
    assert "the RAM differs" in capsys.readouterr().err
    assert main(["play", "--out", "a.start.json"]) == 2
    assert "--out is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(("region", "rate"), [("ntsc", 60), ("pal", 50)])
def test_a_replay_is_filmed_frame_by_frame(
    region: str, rate: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    av = pytest.importorskip("av")
    save_replay(tmp_path / "run.replay.json", region=region)
    assert main(["record", "--replay", "run.replay.json", "--scale", "1"]) == 0
    assert "run.mp4: reached x=" in capsys.readouterr().out
    with av.open("run.mp4") as film:
        assert film.streams.video[0].average_rate == rate
        assert sum(1 for _ in film.decode(video=0)) == 41  # the start, and behind each frame


def test_a_replay_that_leads_elsewhere_leaves_no_film(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_replay(tmp_path / "run.replay.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "ram_sha256": "0" * 64}))
    assert main(["record", "--replay", "run.replay.json", "--out", "film.mp4"]) == 2
    assert "the RAM differs" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["run.replay.json"]
