"""What does not fit into memory is stepped down, said aloud, and tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.folder import run_folder
from warpzone.run.log import Display
from warpzone.run.loop import Outcome
from warpzone.run.memory_ladder import LADDER, step_down, train_within_memory
from warpzone.run.progress import Progress

from .small_runs import Quiet, small_config


def fitting(most_decisions: int, tried: list[TrainConfig]) -> object:
    """A machine whose memory holds a rollout of so many decisions and slices of 256."""

    def attempt(config: TrainConfig, display: Display) -> Outcome:
        tried.append(config)
        envs, steps = config.collect.num_envs, config.collect.rollout_steps
        per_slice = config.learn.decisions_per_minibatch(envs, steps, False) // config.learn.grad_accum
        if envs * steps > most_decisions or per_slice > 256:
            raise MemoryError
        return Outcome(Path("runs/mario"), Progress(), "", 0)

    return attempt


def ladder(tmp_path: Path, most_decisions: int, *flags: str) -> tuple[list[TrainConfig], list[str]]:
    tried: list[TrainConfig] = []
    display = Quiet()
    config = small_config(
        tmp_path, "--num-envs", "64", "--rollout-steps", "32", "--minibatch-size", "256", *flags
    )
    train_within_memory(config, display, fitting(most_decisions, tried))  # type: ignore[arg-type]
    return tried, display.lines


def test_slices_rollouts_and_environments_become_smaller_until_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    tried, lines = ladder(tmp_path, 600)
    shapes = [(c.collect.num_envs, c.collect.rollout_steps, c.learn.grad_accum) for c in tried]
    assert shapes == [(64, 32, 1), (64, 32, 2), (64, 16, 2), (32, 16, 2)]
    warn = "[train][warn] out of memory:"
    assert lines == [
        f"{warn} twice the slices of each minibatch (num_envs=64, rollout_steps=32, grad_accum=2)",
        f"{warn} half the rollout (num_envs=64, rollout_steps=16, grad_accum=2)",
        f"{warn} half the environments (num_envs=32, rollout_steps=16, grad_accum=2)",
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


def test_a_minibatch_that_is_too_large_is_sliced_before_anything_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    tried, _ = ladder(tmp_path, 2048, "--minibatch-size", "512")
    first, last = tried
    assert (last.learn.grad_accum, last.collect, last.learn.minibatch_size) == (2, first.collect, 512)


def test_accumulation_never_becomes_less_on_the_way_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    tried, _ = ladder(tmp_path, 128, "--grad-accum", "2")
    slices = [config.learn.grad_accum for config in tried]
    assert slices == sorted(slices)
    assert slices[0] == 2


def test_a_fresh_run_that_runs_out_of_memory_goes_on_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTO_MEM", "1")
    (tmp_path / "again").mkdir()
    tried, _ = ladder(tmp_path, 600, "--run-name", "again", "--fresh")
    assert [run_folder(config).name for config in tried] == ["again-2"] * 4


def test_a_step_that_is_refused_is_left_out(tmp_path: Path) -> None:
    config = small_config(tmp_path, "--double-buffer")
    config = config.changed("collect", num_envs=18).changed("learn", minibatch_size=144)
    for rung in range(len(LADDER)):
        if (smaller := step_down(config, rung)) is not None:
            assert smaller[1].collect.num_envs == 18
