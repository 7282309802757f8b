"""The pages of the settings say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.cli.info import preset_table
from warpzone.cli.main import main
from warpzone.run.control import BOUNDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_pages_are_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "bench/reference.py"), str(tmp_path)], check=True)
    written = sorted(tmp_path.iterdir())
    assert len(written) == 5
    for page in written:
        assert (DOCS / page.name).read_text() == page.read_text(), "run: python bench/reference.py docs"


def test_the_table_of_presets_is_printed_and_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "presets"]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed == preset_table()
    text = (DOCS / "settings.md").read_text()
    between = text.partition("<!-- presets: warpzone info presets -->")[2].partition(
        "<!-- end of presets -->"
    )[0]
    assert between.strip() == printed
    assert "| `--num-envs` | `64` | `64` | `1024` |" in printed


def test_every_setting_that_can_be_controlled_is_on_its_page() -> None:
    text = (DOCS / "control.md").read_text()
    assert [name for name in BOUNDS if f"`{name}`" not in text] == []
