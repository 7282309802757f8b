"""The pages of the settings say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.cli.main import main
from warpzone.cli.reference import PAGES, preset_table
from warpzone.run.control import BOUNDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run: python -m warpzone.cli.reference docs"


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
