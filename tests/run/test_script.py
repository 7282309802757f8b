"""A scripted start proves the pipeline: buttons move Mario, and moving forward is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.run.script import play_scripts

from .small_runs import small_config

FORWARD = "START:8,RIGHT+B:180"


def played(runs: Path, *flags: str) -> tuple[dict[str, float], list[str]]:
    lines: list[str] = []
    return play_scripts(small_config(runs, *flags), lines.append), lines


def test_a_scripted_episode_is_paid(tmp_path: Path) -> None:
    sums, lines = played(tmp_path, "--scripted-sequence", FORWARD)
    assert sums["shaping_raw_sum"] > 100
    assert sums["shaping_scaled_sum"] == pytest.approx(0.02 * sums["shaping_raw_sum"])
    assert sums["distance_delta_sum"] > 100
    assert lines[0].startswith("[reward] scripted start of 1-1: 47 decisions, shaping_raw_sum=")


def test_walking_forward_needs_no_sequence(tmp_path: Path) -> None:
    walked, _ = played(tmp_path, "--scripted-forward-frames", "180")
    sequence, _ = played(tmp_path, "--scripted-sequence", "RIGHT+B:180")
    assert walked == sequence


def test_walking_backward_earns_nothing_and_is_said(tmp_path: Path) -> None:
    sums, lines = played(tmp_path, "--scripted-forward-frames", "60", "--forward-action-id", "6")
    assert sums["shaping_raw_sum"] == 0
    assert lines[1].startswith("[reward][warn] the scripted start earned nothing")


def test_the_probe_finds_an_action_that_runs_right(tmp_path: Path) -> None:
    sums, lines = played(tmp_path, "--probe-forward-actions", "--scripted-forward-frames", "60")
    assert "RIGHT" in lines[0].split("goes furthest")[0]
    assert "NOOP=0" in lines[0]
    assert sums["shaping_raw_sum"] > 0


def test_an_action_given_by_hand_wins_over_the_probe_which_says_so(tmp_path: Path) -> None:
    sums, lines = played(
        tmp_path, "--probe-forward-actions", "--scripted-forward-frames", "60", "--forward-action-id", "0"
    )
    assert lines[1] == "[reward][warn] --forward-action-id 0 (NOOP) is not the one that goes furthest"
    assert sums["distance_delta_sum"] == 0


def test_without_a_script_nothing_is_played(tmp_path: Path) -> None:
    assert played(tmp_path) == ({}, [])
