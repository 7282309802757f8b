"""What is measured between two records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpzone.envs.rewards import TERMS
from warpzone.run.meters import STAGNATION_DECISIONS, EnvironmentMeter

BOTH = slice(0, 2)


def step(x: list[int], dx: list[int], progress: list[int], paid: float = 0.0, **more: Any) -> dict[str, Any]:
    terms = {term: np.zeros(len(x), np.float32) for term in TERMS}
    terms["distance"][:] = paid
    arrays = {"x_pos": np.array(x), "dx": np.array(dx), "progress": np.array(progress)}
    return {**arrays, "reward_terms": terms, **more}


def test_sums_are_over_steps_and_environments_since_the_last_read() -> None:
    meter = EnvironmentMeter(2)
    meter.observe(BOTH, step([44, 40], [4, 0], [4, 0], paid=0.5), scale=0.1)
    meter.observe(BOTH, step([54, 38], [10, -2], [14, 0], paid=1.0), scale=0.1)
    values = meter.read()
    assert values["env_distance_delta_sum"] == 14
    assert values["env_progress_dx"] == (4 + 10 - 2) / 4
    assert values["env_positive_dx_ratio"] == 2 / 4
    assert values["env_shaping_scaled_sum"] == pytest.approx(3.0)
    assert values["env_shaping_raw_sum"] == pytest.approx(30.0)
    assert (values["env_mean_x_pos"], values["env_max_x_pos"]) == (46, 54)
    assert values["env_shaping_last_scale"] == 0.1
    assert values["env_shaping_last_dx"] == 4
    assert meter.read()["env_shaping_raw_sum"] == 0


def test_the_furthest_x_counts_where_the_episode_ended_not_where_the_next_began() -> None:
    meter = EnvironmentMeter(2)
    final = step([900, 50], [0, 0], [860, 10])
    meter.observe(
        BOTH,
        step([40, 50], [0, 0], [0, 10], final_info=final, _final_info=np.array([True, False])),
        scale=1.0,
    )
    assert meter.read()["env_max_x_pos"] == 900


def test_an_environment_without_new_ground_stagnates_until_it_moves_or_begins_anew() -> None:
    meter = EnvironmentMeter(2)
    still = step([40, 40], [0, 0], [5, 5])
    for _ in range(STAGNATION_DECISIONS + 1):
        meter.observe(BOTH, still, scale=1.0)
    assert meter.read()["stagnation_envs"] == 2
    meter.observe(BOTH, step([41, 40], [1, 0], [6, 5]), scale=1.0)
    assert meter.read()["stagnation_envs"] == 1
    ended = step([40, 40], [0, 0], [0, 0], final_info=still, _final_info=np.array([False, True]))
    meter.observe(BOTH, ended, scale=1.0)
    assert meter.read()["stagnation_envs"] == 0


def test_a_meter_goes_on_from_a_saved_one() -> None:
    whole, first, second = EnvironmentMeter(2), EnvironmentMeter(2), EnvironmentMeter(2)
    steps = [step([40 + i, 40], [1, 0], [i, 0], paid=0.25 * i) for i in range(STAGNATION_DECISIONS + 5)]
    for one in steps:
        whole.observe(BOTH, one, scale=0.5)
    for one in steps[:60]:
        first.observe(BOTH, one, scale=0.5)
    second.load_state_dict(first.state_dict())
    for one in steps[60:]:
        second.observe(BOTH, one, scale=0.5)
    assert second.read() == whole.read()
    assert whole.state_dict()["idle"][1] > STAGNATION_DECISIONS


@pytest.mark.parametrize(("wanted", "lines"), [("1", 1), ("", 0)])
def test_missed_distance_is_said_when_asked_for_and_not_at_every_step(
    wanted: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MARIO_SHAPING_DEBUG", wanted)
    meter = EnvironmentMeter(2)
    for _ in range(10):
        meter.observe(BOTH, step([40, 41], [0, -1], [0, 0]), scale=1.0)
    said = capsys.readouterr().out
    assert said.count("[reward][warn] dx_missed") == lines


def test_steps_of_two_halves_are_summed_as_they_were_step_by_step() -> None:
    """Against a plain loop over steps, read at odd moments: more steps than are put aside at once."""
    chance = np.random.default_rng(5)
    meter, idle, best = EnvironmentMeter(4), np.zeros(4, int), np.full(4, -1)
    for block in (1, 40, 7, 96):
        gain = moved = forward = furthest = 0
        paid = 0.0
        for _ in range(block):
            for columns in (slice(0, 2), slice(2, 4)):
                x, dx = chance.integers(0, 3000, 2), chance.integers(-300, 300, 2)
                progress, ended = chance.integers(0, 50, 2), chance.random(2) < 0.1
                final = step([*(x + 7)], [0, 0], [*(progress + 1)])
                info = step([*x], [*dx], [*progress], paid=0.3, final_info=final, _final_info=ended)
                meter.observe(columns, info, scale=0.5)
                idle[columns] = np.where((progress + 1 > best[columns]) | ended, 0, idle[columns] + 1)
                best[columns] = progress
                gain += np.clip(dx, 0, 256).sum()
                moved += np.clip(dx, -256, 256).sum()
                forward += (dx > 0).sum()
                furthest = max(furthest, x.max() + 7)
                paid += float(np.float32(0.3)) * 2
        values = meter.read()
        assert values["env_distance_delta_sum"] == gain
        assert values["env_progress_dx"] == moved / (4 * block)
        assert values["env_positive_dx_ratio"] == forward / (4 * block)
        assert values["env_max_x_pos"] == furthest
        assert values["env_shaping_scaled_sum"] == pytest.approx(paid, abs=1e-3)
        assert values["env_shaping_raw_sum"] == pytest.approx(2 * paid, abs=1e-3)
        assert meter.state_dict()["idle"].tolist() == idle.tolist()
