"""What does not fit into memory is stepped down, said aloud, and tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.log import Display
from warpzone.run.loop import Outcome
from warpzone.run.memory_ladder import train_within_memory
from warpzone.run.progress import Progress

from .small_runs import Quiet, small_config


def fitting(most_decisions: int, tried: list[TrainConfig]) -> object:
    def attempt(config: TrainConfig, display: Display) -> Outcome:
        tried.append(config)
        if config.collect.num_envs * config.collect.rollout_steps > most_decisions:
            raise MemoryError
        return Outcome(Path("runs/mario"), Progress(), "", 0)

    return attempt


def ladder(tmp_path: Path, most_decisions: int, *flags: str) -> tuple[list[TrainConfig], list[str]]:
    tried: list[TrainConfig] = []
    display = Quiet()
    config = small_config(
        tmp_path, "--num-envs", "64", "--rollout-steps", "32", "--minibatch-size", "64", *flags
    )
    train_within_memory(config, display, fitting(most_decisions, tried))  # type: ignore[arg-type]
    return tried, display.lines


def test_rollouts_then_environments_are_halved_until_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    tried, lines = ladder(tmp_path, 600)
    assert [(c.collect.num_envs, c.collect.rollout_steps) for c in tried] == [(64, 32), (64, 16), (32, 16)]
    assert lines == [
        "[train][warn] out of memory: half the rollout (num_envs=64, rollout_steps=16)",
        "[train][warn] out of memory: half the environments (num_envs=32, rollout_steps=16)",
    ]


def test_without_the_variable_it_is_an_error_that_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTO_MEM", raising=False)
    with pytest.raises(ConfigError, match="AUTO_MEM=1"):
        ladder(tmp_path, 600)


def test_a_ladder_that_ends_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    with pytest.raises(ConfigError, match="Even the smallest configuration"):
        ladder(tmp_path, 0)


def test_accumulation_is_given_up_on_the_way_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    tried, lines = ladder(tmp_path, 128, "--grad-accum", "2")
    assert tried[0].learn.grad_accum == 2
    assert tried[-1].learn.grad_accum == 1
    assert any("no gradient accumulation" in line for line in lines)
