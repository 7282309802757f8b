"""What is done with a trained run: played, filmed, reported, exported, listed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.videos import read_video
from warpzone.watch.fields import FIELDS

from .commands import SMALL, warpzone

FILMED = ("--step-limit", "40", "--stall-limit", "40")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one short run, its final video and one taken on the way."""
    folder = tmp_path_factory.mktemp("trained")
    flags = ("--total-updates", "2", "--video-interval", "2", "--step-every-updates", "1", *FILMED)
    result = warpzone(folder, "train", *SMALL, *flags)
    assert result.code == 0, result.err
    assert "[train] video: runs/mario/videos/update_000002_1-1.mp4" in result.out
    assert "[train] video: runs/mario/videos/final_1-1.mp4" in result.out
    assert "[train][log] tensorboard_log_dir=runs/mario/tensorboard" in result.out
    return folder


def test_training_leaves_videos_that_play(folder: Path) -> None:
    for name in ("update_000002_1-1.mp4", "final_1-1.mp4"):
        frames = read_video(folder / "runs" / "mario" / "videos" / name)
        assert len(frames) >= 40
        assert frames[0].shape[2] == 3
        assert (frames[0] != frames[-1]).any()


def test_eval_counts_sampled_and_greedy_episodes(folder: Path) -> None:
    out = folder / "results" / "eval.json"
    result = warpzone(folder, "eval", "--episodes", "3", "--threads", "1", "--out", str(out))
    assert result.code == 0, result.err
    saved = json.loads(out.read_text())
    assert saved["global_step"] == 256
    assert set(saved["results"]) == {"sampled", "greedy", "sticky"}
    for mode, rows in saved["results"].items():
        assert [row["stage"] for row in rows] == ["1-1"]
        # Greedy play has one episode for each number of idle frames at the start.
        wanted = saved["noop_max"] + 1 if mode == "greedy" else 3
        assert rows[0]["episodes"] == sum(rows[0]["ends"].values()) == wanted
        assert 0 <= rows[0]["clear_rate"] <= 1
        assert 0 < rows[0]["mean_x"] <= rows[0]["max_x"]
    again = warpzone(
        folder, "eval", "--episodes", "3", "--threads", "1", "--out", str(out), "--mode", "sampled"
    )
    assert again.code == 0
    assert json.loads(out.read_text())["results"] == {"sampled": saved["results"]["sampled"]}


def test_eval_plays_the_whole_game(folder: Path) -> None:
    out = folder / "game.json"
    flags = ("--stages", "1-1,game", "--mode", "sampled", "--episodes", "2", "--out", str(out))
    result = warpzone(folder, "eval", *flags)
    assert result.code == 0, result.err
    assert "whole game, sampled: 2 games: 0 finished without a death" in result.out
    saved = json.loads(out.read_text())
    assert [row["stage"] for row in saved["results"]["sampled"]] == ["1-1"]
    assert [game["deaths"] for game in saved["game"]["sampled"]["each"]] == [3, 3]


def test_eval_writes_a_table_and_a_board_into_a_folder(folder: Path) -> None:
    out = folder / "board"
    flags = ("--stages", "1-1,4-2", "--episodes", "1", "--mode", "sampled,greedy", "--threads", "1")
    result = warpzone(folder, "eval", *flags, "--out", str(out))
    assert result.code == 0, result.err
    assert sorted(path.name for path in out.iterdir()) == ["eval.json", "eval.md", "eval.png"]
    assert "| 4-2 |" in (out / "eval.md").read_text()
    assert (out / "eval.png").read_bytes().startswith(b"\x89PNG")


def test_eval_plays_the_lost_levels(folder: Path) -> None:
    asked = warpzone(folder, "eval", "--lost-levels", "--dry-run")
    assert asked.code == 0, asked.err
    assert len(json.loads(asked.out)["stages"]) == 16
    flags = ("--stages", "1-1", "--episodes", "1", "--mode", "sampled", "--threads", "1")
    played = warpzone(folder, "eval", "--lost-levels", *flags)
    assert played.code == 0, played.err
    assert "Lost Levels" in played.out


def test_record_films_several_stages_at_once(folder: Path) -> None:
    out = folder / "films" / "grid.mp4"
    flags = ("--stages", "1-1,1-2", "--tries", "1", "--threads", "1", "--montage", str(out))
    result = warpzone(folder, "record", *flags)
    assert result.code == 0, result.err
    assert "of 2 stages cleared" in result.out
    assert read_video(out)[0].shape == (2 * 134, 128, 3)


@pytest.mark.parametrize("kind", ["mp4", "gif"])
def test_record_films_an_episode(kind: str, folder: Path) -> None:
    out = folder / f"film.{kind}"
    result = warpzone(folder, "record", "--any-episode", "--scale", "1", "--no-overlay", "--out", str(out))
    assert result.code == 0, result.err
    assert str(out) in result.out
    if kind == "mp4":
        frames = read_video(out)
        assert frames[0].shape == (240, 256, 3)
        assert len(frames) > 60
    else:
        assert out.read_bytes().startswith(b"GIF8")


def test_report_is_one_page_with_the_curves(folder: Path) -> None:
    result = warpzone(folder, "report", "mario")
    assert result.code == 0, result.err
    page = (folder / "runs" / "mario" / "report.html").read_text()
    assert page.count("data:image") >= 3
    assert "mario" in page


def test_export_writes_every_record_as_a_table(folder: Path) -> None:
    assert warpzone(folder, "export", "mario").code == 0
    table = pyarrow.parquet.read_table(folder / "runs" / "mario" / "metrics" / "history.parquet")
    assert table.column("update").to_pylist() == [1, 2]
    assert set(FIELDS) <= set(table.column_names)
    assert warpzone(folder, "export", "mario", "--format", "csv", "--out", "history.csv").code == 0
    with (folder / "history.csv").open() as file:
        assert [row["global_step"] for row in csv.DictReader(file)] == ["128", "256"]


def test_export_gives_the_agent_away_as_a_file_that_plays(folder: Path) -> None:
    assert (
        warpzone(
            folder,
            "export",
            "mario",
            "--format",
            "safetensors",
            "--out",
            "given/agent.safetensors",
            "--temperature",
            "0.5",
        ).code
        == 0
    )
    card = json.loads((folder / "given" / "agent.json").read_text())
    assert (card["name"], card["temperature"]) == ("mario", 0.5)
    played = warpzone(
        folder, "eval", "--checkpoint", "given/agent.safetensors", "--episodes", "2", "--mode", "greedy"
    )
    assert played.code == 0
    assert "greedy" in played.out
    refused = warpzone(folder, "export", "mario", "--format", "safetensors", "--out", "agent.bin")
    assert refused.code == 2
    assert "does not end in .safetensors" in refused.err


def test_checkpoints_are_listed_and_described(folder: Path) -> None:
    listed = warpzone(folder, "checkpoints", "list")
    assert listed.code == 0
    for name in ("latest", "step_000000000128", "step_000000000256"):
        assert name in listed.out
    described = warpzone(folder, "checkpoints", "inspect", "runs/mario/checkpoints/latest.pt", "--json")
    assert described.code == 0
    assert json.loads(described.out)["global_step"] == 256


def test_dry_runs_say_what_they_would_do_and_write_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    resolved = warpzone(
        folder, "train", "--dry-run", "--fresh", "--preset", "cpu", REWARD_DISTANCE_WEIGHT="0.05"
    )
    assert json.loads(resolved.out)["reward"]["reward_distance_weight"] == 0.05
    for argv in (
        ["eval"],
        ["record"],
        ["report", "mario"],
        ["export", "mario"],
        ["checkpoints", "prune", "runs", "--keep", "1"],
    ):
        result = warpzone(folder, *argv, "--dry-run")
        assert result.code == 0, result.err
        assert result.out
    assert sorted(folder.rglob("*")) == before
