"""`warpzone export` and `warpzone report` turn a run into a table and a page."""

from __future__ import annotations

import csv
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from warpzone.cli import export, report
from warpzone.errors import ConfigError
from warpzone.watch.metrics import MetricsWriter
from warpzone.watch.video import write_video


def make_run(folder: Path, *, updates: int = 30, replay: bool = True) -> Path:
    writer = MetricsWriter(folder, rotate_bytes=20_000)
    for update in range(1, updates + 1):
        rate = update / updates
        values = {
            "update": update, "global_step": update * 1000, "avg_return": 100 * rate,
            "recent_return_p50": 90 * rate, "recent_return_p90": 140 * rate, "recent_return_p99": 150 * rate,
            "clear_rate": {"1-1": rate, "1-2": rate / 2}, "clear_rate_mean": 0.75 * rate,
            "env_steps_per_sec": 5000 + 100 * math.sin(update), "collect_share": 0.6, "learn_share": 0.4,
            "loss_policy": 0.1, "loss_value": 0.5, "entropy": 1.5 - rate,
        }  # fmt: skip
        writer.write(
            {**values, "replay_fill_rate": rate, "replay_avg_unique_ratio": 0.9} if replay else values
        )
    writer.close()
    (folder / "config.json").write_text('{"stage": "1-1", "note": "<b>not markup</b>"}')
    return folder


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.sources += [found["src"] or ""] if "src" in found else []
        self.links += [found["href"] or ""] if "href" in found else []


def test_a_report_is_one_page_with_its_pictures_inside(tmp_path: Path) -> None:
    a, b = make_run(tmp_path / "runs" / "a"), make_run(tmp_path / "runs" / "b", replay=False)
    found = {"1-1": {"clear_rate": 0.97, "low": 0.94, "high": 0.98, "episodes": 256}}
    (a / "outcome.json").write_text(json.dumps({"last_evaluation": {"update": 9, "stages": found}}))
    assert report.run(["a", str(b), "--runs-dir", str(tmp_path / "runs")]) == 0
    text = (tmp_path / "runs" / "report_a_b.html").read_text()
    assert not (a / "report.html").exists()
    page = Page(text)
    assert page.links == []
    assert all(source.startswith("data:") for source in page.sources)
    titles = re.findall("<h2>(.*?)</h2>", text)
    for title in (
        "Return",
        "Clear rate per stage",
        "Throughput",
        "Share of time",
        "Return quantiles",
        "Replay health",
    ):
        assert title in titles
    assert "GPU" not in titles
    assert "&lt;b&gt;not markup" in text
    assert "a, evaluated after update 9" in text
    assert "1-1: 97.0 % (94.0 to 98.0) of 256 fresh episodes" in text
    assert "b, evaluated" not in text
    pictures = sorted(p.name for p in (tmp_path / "runs" / "report_a_b").glob("*.png"))
    assert "clear_rate_per_stage.png" in pictures
    assert len(pictures) == len(titles)


def test_a_comparison_shows_the_settings_that_differ_and_the_updates_of_the_last_checkpoint(
    tmp_path: Path,
) -> None:
    a, b = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    for run, stage, rate in ((a, "1-1", 0.5), (b, "1-2", 0.25)):
        config = {
            "run": {"run_name": run.name},
            "stage": {"stages": stage},
            "learn": {"clip": rate, "gamma": 0.9},
        }
        (run / "config.json").write_text(json.dumps(config))
    (a / "checkpoints").mkdir()
    (a / "checkpoints" / "latest.json").write_text('{"global_update": 33, "global_step": 33000}')
    assert report.run([str(a), str(b)]) == 0
    text = (tmp_path / "report_a_b.html").read_text()
    assert "These runs train on different stages." in text
    assert (
        "<tr><td>stages</td><td>1-1</td><td>1-2</td></tr><tr><td>clip</td><td>0.5</td><td>0.25</td></tr>"
        in text
    )
    assert "<td>gamma</td>" not in text
    assert "<tr><td>a</td><td>33</td><td>33,000</td>" in text
    assert "<tr><td>b</td><td>30</td><td>30,000</td>" in text


def test_small_videos_are_inside_and_large_ones_linked(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    frames = list(np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8))
    write_video(frames, run / "videos" / "one.mp4")
    report.run([str(run)])
    assert any(s.startswith("data:video/mp4") for s in Page((run / "report.html").read_text()).sources)
    report.run([str(run), "--inline-video-mb", "0"])
    assert Page((run / "report.html").read_text()).links == ["videos/one.mp4"]


def test_a_run_with_one_record_or_an_empty_one_still_gives_a_page(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", updates=1)
    assert report.run([str(one)]) == 0
    empty = tmp_path / "empty"
    MetricsWriter(empty).close()
    assert report.run([str(empty)]) == 0


def test_export_writes_the_whole_history(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    assert list(run.glob("metrics.*.jsonl.gz"))
    assert export.run([str(run)]) == 0
    table = pq.read_table(run / "metrics" / "history.parquet")
    assert table["update"].to_pylist() == list(range(1, 31))
    assert export.run([str(run), "--format", "csv", "--out", str(tmp_path / "x.csv")]) == 0
    with (tmp_path / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["avg_return"]) for row in rows] == table["avg_return"].to_pylist()
    assert json.loads(rows[-1]["clear_rate"])["1-1"] == 1.0


@pytest.mark.parametrize("command", [export, report])
def test_dry_run_writes_nothing(tmp_path: Path, command: object) -> None:
    run = make_run(tmp_path / "a")
    before = sorted(tmp_path.rglob("*"))
    assert command.run([str(run), "--dry-run"]) == 0  # type: ignore[attr-defined]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", [export, report])
def test_what_is_no_run_is_one_of_our_errors(tmp_path: Path, command: object) -> None:
    with pytest.raises(ConfigError, match="not a run"):
        command.run([str(tmp_path)])  # type: ignore[attr-defined]
