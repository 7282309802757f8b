"""Figures on the pages come from files, and pages stay short enough to read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEFORE_THAT_RULE = {
    "eval-32-first.json": ["command", "date", "hardware"],
    "recipe-cpu.json": ["command"],
    "recipe-gpu.json": ["command"],
}
"""Files written before results said how they were made -> what they lack; the pages that use them say it."""
SPEED = re.compile(
    r"(?<![\w./-])\d[\d,.]* ?(?:decisions/s|frames/s|steps/s|us\b|times (?:as|faster|slower)\b)"
)
QUOTED = {"63,606 decisions/s", "5,151 decisions/s", "395 us"}
"""Speeds that others have published, or that the page quotes from a dated note."""
HISTORY = ("async-hang.md", "from-the-seed-system.md")
CLAIM = re.compile(r"\d[\d,.]* ?(?:%|s\b|times|倍|秒)")


def test_every_figure_says_what_its_file_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/figures.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_a_changed_figure_is_noticed(page: str) -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        from figures import filled
    finally:
        sys.path.pop(0)
    text = (ROOT / page).read_text()
    wrong = re.sub(r"(<!--figure 32-mean-->)[^<]*", r"\g<1>99.9 %", text)
    assert wrong != text
    assert filled(wrong) == text


@pytest.mark.parametrize(("readme", "heading"), [("README.md", "## Results"), ("README.zh-CN.md", "## 结果")])
def test_results_in_a_readme_come_from_files(readme: str, heading: str) -> None:
    section = (ROOT / readme).read_text().partition(heading)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:6]
    claims = [re.sub("<!--figure .*?<!--/figure-->", "", row.split("|")[1]) for row in rows]
    assert len(claims) == 5
    assert [claim for claim in claims if CLAIM.search(claim)] == []


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md")])
        if page.name not in HISTORY
    ],
    ids=lambda path: path.name,
)
def test_no_speed_on_a_page_was_typed_by_hand(page: Path) -> None:
    text = re.sub("<!--figure .*?<!--/figure-->", "", page.read_text(), flags=re.DOTALL)
    text = re.sub("^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert [speed for speed in SPEED.findall(text) if speed not in QUOTED] == []


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "data").glob("*.json")), ids=lambda path: path.name)
def test_a_file_of_results_says_how_it_was_made(file: Path) -> None:
    document = json.loads(file.read_text())
    for made in (
        document["runs"]
        if file.name in ("learning-cpu.json", "learning-hosts.json", "stages-cpu.json")
        else [document]
    ):
        missing = [key for key in ("command", "date") if key not in made]
        if not made.keys() & {"hardware", "processor", "machine"}:
            missing.append("hardware")
        assert missing == BEFORE_THAT_RULE.get(file.name, [])
    assert re.findall(r"[\"' ](/(?:tmp|home|root|work)/[^\"' ]*)", file.read_text()) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_is_short_enough_to_read(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 250
