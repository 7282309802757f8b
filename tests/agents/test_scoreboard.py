"""Results as Markdown and as a picture."""

from __future__ import annotations

import io

import matplotlib.image
import pytest

from warpzone.agents.evaluation import StageResult
from warpzone.agents.scoreboard import as_markdown, as_png, mean_rate
from warpzone.envs.stages import ALL_STAGES


def result(stage: str, rate: float) -> StageResult:
    return StageResult(stage, 100, round(100 * rate), 1.0, 1234.5, 3161, 250.0, None, {"flag": 100})


def test_the_table_has_a_row_for_every_stage_and_counts_what_is_mastered() -> None:
    results = {
        "sampled": [result("1-1", 0.96), result("8-4", 0.5)],
        "sticky": [result("1-1", 0.8), result("8-4", 0)],
    }
    text = as_markdown(results, "mario")
    assert text.startswith("# mario\n")
    assert "| stage | sampled | sticky | mean x, sampled |" in text
    assert "| 1-1 | 96% | 80% | 1,234 |" in text
    assert "| **mean** | **73.0%** | **40.0%** | |" in text
    assert "| stages at 95% or more | 1 | 0 | |" in text
    assert "| stages at 80% or more | 1 | 1 | |" in text
    assert mean_rate(results["sticky"]) == pytest.approx(0.4)


def test_the_board_is_green_where_stages_are_cleared_and_red_where_not() -> None:
    def colours(rate: float) -> tuple[float, float]:
        picture = as_png({"sampled": [result(s, rate) for s in ALL_STAGES]}, "mario")
        pixels = matplotlib.image.imread(io.BytesIO(picture))
        assert pixels.shape[1] > pixels.shape[0]
        return float(pixels[..., 0].mean()), float(pixels[..., 1].mean())

    red, green = colours(0.0)
    assert red > green
    red, green = colours(1.0)
    assert green > red


@pytest.mark.parametrize("stages", [["3-2"], ["game"], ["1-1", "8-4", "5-3"]])
def test_any_choice_of_stages_can_be_drawn(stages: list[str]) -> None:
    rows = [result(stage, 0.5) for stage in stages]
    assert as_png({"sampled": rows, "greedy": rows}, "a long title " * 20).startswith(b"\x89PNG")
