"""Every learning curve on the pages can be drawn again from files in the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .pages import PAGES, ROOT

sys.path.insert(0, str(ROOT / "bench"))
from plot_docs import PLOTS, draw, read, source, together

sys.path.pop(0)


def test_every_plot_has_its_files_and_a_page_and_no_curve_is_left_over() -> None:
    used = {source(name) for plot in PLOTS.values() for names in plot.curves.values() for name in names}
    assert [path for path in used if not path.is_file()] == []
    assert set((ROOT / "docs/media/curves").glob("*.csv")) <= used
    shown = {name for page in PAGES for name in re.findall(r"media/([\w-]+)\.png", page.read_text())}
    assert PLOTS.keys() <= shown
    assert [name for name in shown if re.match("cpu-|h200-", name) and name not in PLOTS] == []


def test_a_band_spans_the_seeds_and_a_finished_run_keeps_its_last_rate() -> None:
    grid, rates = together([([0.0, 10.0], [0.0, 1.0]), ([0.0, 20.0], [0.0, 0.5])])
    assert (grid[0], grid[-1]) == (0.0, 20.0)
    assert rates[:, -1].tolist() == [1.0, 0.5]
    x, y = read("learning-cpu.json:0", seconds=True)
    assert len(x) == len(y) > 10
    assert 0.9 < y[-1] <= 1.0


def test_a_name_that_is_no_plot_is_answered_with_the_names() -> None:
    asked = subprocess.run(
        [sys.executable, str(ROOT / "bench/plot_docs.py"), "nosuch"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 2
    assert "no plot is named 'nosuch': choose from cpu-1-1, h200-1-1" in asked.stderr
    assert "[]" not in asked.stderr


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    draw("cpu-1-1", tmp_path / "plot.png")
    assert 5_000 < (tmp_path / "plot.png").stat().st_size < 60_000
