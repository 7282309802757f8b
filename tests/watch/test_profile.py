"""A profile has a trace and a table; without one, naming a phase does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from warpzone.watch import profile
from warpzone.watch.profile import UpdateProfiler, phase, phase_table


def test_a_few_updates_are_profiled_and_named(tmp_path: Path) -> None:
    profiler = UpdateProfiler(tmp_path, updates=2, skip=1)
    for _ in range(4):
        with phase("learning"):
            torch.ones(8, 8) @ torch.ones(8, 8)
        profiler.step()
    profiler.close()
    table = (tmp_path / "table.txt").read_text()
    (row,) = [line for line in table.splitlines() if line.startswith("learning ")][:1]
    assert row.split()[1] == "2"
    names = {event.get("name") for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert "learning" in names
    assert profile._active is None


def test_a_phase_is_nothing_when_no_profile_is_taken() -> None:
    assert phase("emulation") is phase("learning")


def test_the_table_is_sorted_by_time() -> None:
    table = phase_table({"transfer": (1, 0.1), "emulation": (2, 0.6)}, wall_s=1.0)
    assert [line.split()[0] for line in table.splitlines()] == ["phase", "emulation", "transfer"]
    assert "60.0%" in table
