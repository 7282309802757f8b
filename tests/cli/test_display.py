"""The live display fits the terminal and names the goal that is nearest."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from warpzone.cli.display import TrainDisplay, nearest_goal, plain_lines
from warpzone.cli.train import settings
from warpzone.envs.stages import ALL_STAGES
from warpzone.run.config import TrainConfig
from warpzone.watch.metrics import complete_record


def config(tmp_path: Path, *flags: str) -> TrainConfig:
    return settings(["--preset", "cpu", "--runs-dir", str(tmp_path), *flags], {})


def record(**values: Any) -> dict[str, Any]:
    return complete_record({"update": 10, "global_step": 20_480, "elapsed_s": 90.0, **values})


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_all_stages_fit_on_a_screen(
    width: int, tmp_path: Path
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=width, height=24, force_terminal=True, color_system=None)
    rates = {stage: i / 32 for i, stage in enumerate(ALL_STAGES)}
    with TrainDisplay(config(tmp_path, "--random-stage"), console) as display:
        display.update(
            record(clear_rate=rates, clear_rate_mean=0.5, replay_fill_rate=0.5, gpu_util_mean_window=80.0)
        )
        drawn = console.render_lines(display.live.renderable, pad=False) if display.live else []
    lines = ["".join(segment.text for segment in line) for line in drawn]
    assert max(map(len, lines)) <= width
    assert len(lines) < 24
    text = " ".join(lines)
    assert all(stage in text for stage in ALL_STAGES)
    assert "50% full" in text
    assert "80% busy" in text


def test_without_a_terminal_lines_are_printed_with_their_prefixes(tmp_path: Path) -> None:
    page = io.StringIO()
    with TrainDisplay(config(tmp_path), Console(file=page, width=40)) as display:
        display.update(record(env_steps_per_sec=12_345.0, replay_fill_rate=0.5, replay_last_unique_ratio=0.75,
                              replay_avg_unique_ratio=0.7))  # fmt: skip
    first, second = page.getvalue().splitlines()
    assert first.startswith("[train]    90.0s update 10 steps 20,480 12,345/s")
    assert second == "[replay][stat] fill=50.0% unique=75.0% avg_unique=70.0%"


def test_a_run_without_replay_says_nothing_about_it() -> None:
    assert [line.split()[0] for line in plain_lines(record())] == ["[train]"]


def test_the_bar_follows_the_goal_that_is_nearest(tmp_path: Path) -> None:
    limits = config(tmp_path, "--total-updates", "40", "--time-limit", "30", "--until-clear-rate", "0.9")
    assert nearest_goal(limits, record(clear_rate_mean=None)) == (0.25, "update 10 of 40")
    assert nearest_goal(limits, record(clear_rate_mean=0.45)) == (0.5, "clears 45% of 90%")
    assert nearest_goal(limits, record(elapsed_s=1200.0)) == (pytest.approx(2 / 3), "minute 20.0 of 30")
    assert nearest_goal(limits, record(clear_rate_mean=1.0))[0] == 1.0


def test_a_run_without_limits_has_no_goal_to_show(tmp_path: Path) -> None:
    endless = config(tmp_path, "--time-limit", "0", "--until-clear-rate", "0")
    assert nearest_goal(endless, record()) == (0.0, "training")
