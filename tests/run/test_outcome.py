"""What a run leaves for the program that started it, and half of its environments with noise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from warpzone.agents.evaluation import StageResult
from warpzone.errors import ConfigError
from warpzone.run.build import build_envs
from warpzone.run.loop import Outcome
from warpzone.run.progress import Progress

from .small_runs import Quiet, small_config, small_run


def test_a_run_says_in_a_file_why_it_ended(tmp_path: Path) -> None:
    small_run(tmp_path, "--total-updates", "2")
    left = json.loads((tmp_path / "mario" / "outcome.json").read_text())
    assert left["elapsed_s"] > 0
    assert {name: left[name] for name in ("reason", "exit_code", "update", "global_step", "confirmed")} == {
        "reason": "all updates are done", "exit_code": 0, "update": 2, "global_step": 256, "confirmed": {},
    }  # fmt: skip


def test_what_was_confirmed_is_in_the_file(tmp_path: Path) -> None:
    result = StageResult("1-1", 100, 95, 1.0, 3000.0, 3161, 250.0, 260.0, {"death": 5, "flag": 95})
    outcome = Outcome(tmp_path, Progress(update=3), "the target clear rate was reached", 0, {"1-1": result})
    confirmed = json.loads(json.dumps(outcome.as_dict()))["confirmed"]["1-1"]
    assert confirmed["clear_rate"] == 0.95
    assert confirmed["low"] < 0.95 < confirmed["high"]


def test_a_session_without_an_evaluation_keeps_the_last_one(tmp_path: Path) -> None:
    file = small_run(tmp_path, "--total-updates", "2").folder / "outcome.json"
    left = json.loads(file.read_text())
    assert left["last_evaluation"] is None
    found = {"update": 2, "stages": {"1-1": {"clear_rate": 0.97, "low": 0.94, "high": 0.98, "episodes": 256}}}
    file.write_text(json.dumps({**left, "last_evaluation": found}))
    small_run(tmp_path, "--total-updates", "3")
    after = json.loads(file.read_text())
    assert (after["update"], after["last_evaluation"]) == (3, found)


def test_only_the_second_half_of_the_environments_has_sticky_buttons(tmp_path: Path) -> None:
    config = small_config(tmp_path, "--double-buffer", "--noisy-sticky", "0.25", "--sticky", "0.1")
    halves = build_envs(config, torch.device("cpu"), lambda line: None)
    try:
        assert [half.view.sticky for half in halves] == [0.1, 0.25]
    finally:
        for half in halves:
            half.close()


def test_episodes_with_sticky_buttons_are_marked_and_counted_apart(tmp_path: Path) -> None:
    display = Quiet()
    noise = ("--double-buffer", "--noisy-sticky", "0.25", "--trails", "", "--stall-limit", "20")
    outcome = small_run(tmp_path, *noise, "--total-updates", "9", display=display)
    lines = (outcome.folder / "episodes.jsonl").read_text().splitlines()
    played = [(one["env"], one["noisy"]) for one in map(json.loads, lines)]
    assert {noisy for _, noisy in played} == {True, False}
    assert all(noisy == (env >= 4) for env, noisy in played)
    last = display.records[-1]
    assert (last["clear_rate"], last["clear_rate_noisy"]) == ({"1-1": 0.0}, 0.0)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--noisy-sticky", "0.2"), "add --double-buffer"),
        (("--noisy-sticky", "2"), "noisy_sticky must be from 0 to 1"),
    ],
)
def test_noise_that_can_not_be_is_refused(flags: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        small_config(tmp_path, *flags)
