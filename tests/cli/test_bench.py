"""Benchmarks check correctness first, time sides in turn and write what they found."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from warpzone.cli.bench import run
from warpzone.cli.bench_overlap import MODES, row, shown
from warpzone.cli.bench_results import in_turn, ratio
from warpzone.cli.bench_train import Side, what_is_wrong
from warpzone.cli.train import settings
from warpzone.errors import ConfigError
from warpzone.learn.priorities import SumTree

COLUMNS = "mode,num_envs,rollout,steps_per_sec_mean,updates_per_sec_mean,replay_fill_final,gpu_util_mean_window,duration_sec"  # noqa: E501


def test_sides_take_turns() -> None:
    order: list[str] = []

    def side(name: str, value: float) -> Any:
        def measure() -> float:
            order.append(name)
            return value

        return measure

    rates = in_turn({"a": side("a", 2.0), "b": side("b", 1.0)}, rounds=3, console=Console(quiet=True))
    assert order == ["a", "b"] * 3
    assert rates == {"a": [2.0] * 3, "b": [1.0] * 3}


def test_a_ratio_is_taken_round_by_round() -> None:
    assert ratio([10, 40, 90], [10, 10, 10]) == {"median": 4, "low": 1, "high": 9}


def test_the_replay_draws_exactly_and_says_how_fast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "replay.json"
    flags = [
        "--capacity",
        "4096",
        "--samples",
        "200000",
        "--rounds",
        "1",
        "--seconds",
        "0.01",
        "--size",
        "8",
        "8",
    ]
    assert run(["replay", *flags, "--out", str(out)]) == 0
    saved = json.loads(out.read_text())
    assert {result["sampler"] for result in saved["results"]} >= {"sum tree", "prefix sums on cpu"}
    assert all(0 <= result["kl"] < 1e-3 for result in saved["results"])
    assert all(result["decisions_per_s"] > 0 for result in saved["results"])
    assert "[benchmark] KL <=" in capsys.readouterr().out


def test_a_sampler_that_draws_wrongly_fails_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = SumTree.draw

    def skewed(self: SumTree, n: int, generator: Any) -> Any:
        index, probability = draw(self, n, generator)
        return index // 2, probability

    monkeypatch.setattr(SumTree, "draw", skewed)
    flags = [
        "--capacity",
        "4096",
        "--samples",
        "50000",
        "--rounds",
        "1",
        "--seconds",
        "0.01",
        "--size",
        "8",
        "8",
    ]
    assert run(["replay", *flags]) == 1
    assert "sum tree diverges" in capsys.readouterr().out


def test_overlap_trains_the_whole_matrix_into_a_csv_of_the_contract(tmp_path: Path) -> None:
    train = [
        "--preset",
        "cpu",
        "--torch-threads",
        "1",
        "--env-threads",
        "1",
        "--per",
        "--per-capacity",
        "256",
    ]
    flags = ["--num-envs-list", "4,8", "--rollout-list", "8", "--updates", "4", "--warmup-frac", "0.5"]
    assert run(["overlap", *flags, "--out-dir", str(tmp_path), "--", *train]) == 0
    (page,) = tmp_path.glob("bench_overlap_*.csv")
    lines = page.read_text().splitlines()
    assert lines[0] == COLUMNS
    rows = list(csv.DictReader(lines))
    assert [(r["mode"], r["num_envs"], r["rollout"]) for r in rows] == [
        (mode, n, "8") for n in ("4", "8") for mode in MODES
    ]
    for one in rows:
        assert float(one["steps_per_sec_mean"]) == pytest.approx(
            float(one["updates_per_sec_mean"]) * 8 * int(one["num_envs"])
        )
        assert 0 < float(one["replay_fill_final"]) <= 1
        assert one["gpu_util_mean_window"] == ""


def test_the_warm_up_is_not_counted(tmp_path: Path) -> None:
    config = settings(
        ["--preset", "cpu", "--runs-dir", str(tmp_path), "--num-envs", "4", "--rollout-steps", "128"], {}
    )
    slow, fast = (
        {"update_time": t, "replay_fill_rate": None, "gpu_util_mean_window": 50.0} for t in (9.0, 0.5)
    )
    found = row(config, "sync", [slow, slow, fast, fast], warmup_frac=0.5, duration_s=19.0)
    assert (found.updates_per_sec_mean, found.steps_per_sec_mean) == (2.0, 1024.0)
    assert (found.replay_fill_final, found.gpu_util_mean_window, found.duration_sec) == (None, 50.0, 19.0)
    assert shown([found]).row_count == 0


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["overlap", "--num-envs-list", "8,none"], "--num-envs-list is a list of positive numbers"),
        (["overlap", "--rollout-list", "0"], "--rollout-list is a list of positive numbers"),
        (["overlap", "--warmup-frac", "1"], "--warmup-frac is a share"),
        (["overlap", "--", "--stage", "9"], "There is no stage '1-9'"),
        (["train", "--rounds", "0"], "--rounds must be at least 1"),
        (["train", "--preset", "cpu", "--nes-py-envs", "7"], "does not divide"),
        (["replay", "--capacity", "0"], "must be at least 1"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(argv: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        run(argv)


@pytest.mark.parametrize("name", ["train", "overlap", "replay"])
def test_dry_runs_print_what_would_be_measured(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_training_is_compared_with_stable_baselines_of_the_same_network(tmp_path: Path) -> None:
    out = tmp_path / "train.json"
    flags = [
        *("--preset", "cpu", "--rounds", "1", "--seconds", "0"),
        *("--num-envs", "16", "--nes-py-envs", "0", "--threads", "1"),
    ]
    assert run(["train", *flags, "--out", str(out)]) == 0
    results = json.loads(out.read_text())["results"]
    assert set(results) == {"warpzone native", "warpzone torch", "SB3"}
    assert results["SB3"]["times"]["SB3"] == {"median": 1, "low": 1, "high": 1}
    ours = results["warpzone native"]
    assert ours["times"]["SB3"]["median"] == pytest.approx(
        ours["decisions_per_s"] / results["SB3"]["decisions_per_s"]
    )


def test_nothing_is_timed_when_the_networks_differ_or_a_loss_is_not_a_number() -> None:
    def side(parameters: int, loss: float) -> Side:
        made = Side(lambda: loss, parameters, 1)
        made.work()
        return made

    assert what_is_wrong({"a": side(5, 0.1), "b": side(5, -0.1)}) is None
    assert "not the same" in (what_is_wrong({"a": side(5, 0.1), "b": side(6, 0.1)}) or "")
    assert "losses of b" in (what_is_wrong({"a": side(5, 0.1), "b": side(5, float("nan"))}) or "")
