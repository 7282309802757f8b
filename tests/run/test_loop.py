"""The training loop: what it learns with, what it says, and what it leaves behind when something goes wrong."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpzone.agents import recording
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.errors import CheckpointError
from warpzone.learn.learner import Learner
from warpzone.run.stopping import StopFlag
from warpzone.watch.heartbeat import Heartbeat
from warpzone.watch.metrics import read_metrics

from .small_runs import Quiet, measured, small_run

EVERY: dict[str, tuple[str, ...]] = {
    **{f"algo {name}": ("--algo", name) for name in ("a3c", "impala", "appo", "ppo")},
    **{f"memory {name}": ("--recurrent-type", name) for name in ("gru", "lstm", "transformer")},
    "replay": ("--per",),
    "replay on the device": ("--per", "--per-gpu-sample"),
    "replay every other update, two batches": ("--per", "--per-sample-interval", "2", "--per-batches", "2"),
    "replay with memory": ("--per", "--recurrent-type", "gru"),
    "overlapped": ("--overlap-collect", "--algo", "appo"),
    "double-buffered": ("--double-buffer",),
    "overlapped and double-buffered": ("--overlap-collect", "--double-buffer", "--algo", "impala"),
    "gradient accumulation": ("--grad-accum", "4", "--learner", "torch"),
    "several stages": ("--world", "1", "--stage-span", "4", "--normalise-values", "--curriculum", "progress"),
    "nature network": ("--encoder", "nature", "--size", "84", "84"),
}


@pytest.mark.parametrize("kind", EVERY)
def test_everything_there_is_to_choose_trains(kind: str, tmp_path: Path) -> None:
    display = Quiet()
    replay = ("--per-capacity", "512", "--per-batch-size", "32")
    outcome = small_run(tmp_path, "--total-updates", "3", *replay, *EVERY[kind], display=display)
    assert (outcome.progress.update, outcome.progress.global_step) == (3, 3 * 8 * 16)
    for record in display.records:
        assert record["loss_total"] is not None
        assert record["grad_norm"] > 0
        assert 0 < record["entropy"] <= 1.95
    if "--per" in EVERY[kind]:
        assert display.records[-1]["replay_push_total"] == 3 * 8 * 16
        # Of two updates at least one has learned from the replay.
        assert any(record["loss_per"] for record in display.records[-2:])
    if "--overlap-collect" in EVERY[kind]:
        # 0 where the collecting thread came late to its turn; tests/collect has the exact lag.
        assert display.records[-1]["policy_lag"] in (0, 1)
    else:
        assert display.records[-1]["policy_lag"] == 0


def test_global_step_is_counted_the_same_with_and_without_overlap(tmp_path: Path) -> None:
    for name, flags in (("turns", ()), ("overlapped", ("--overlap-collect", "--algo", "appo"))):
        small_run(tmp_path, "--run-name", name, "--total-updates", "3", *flags)
    steps = [[r["global_step"] for r in read_metrics(tmp_path / name)] for name in ("turns", "overlapped")]
    assert steps[0] == steps[1] == [128, 256, 384]


@pytest.mark.parametrize("updates", [1, 5, 7])
def test_the_last_updates_of_a_run_are_in_its_metrics(updates: int, tmp_path: Path) -> None:
    small_run(tmp_path, "--total-updates", str(updates), "--log-interval", "5")
    records = read_metrics(tmp_path / "mario")
    assert [record["update"] for record in records] == sorted({*range(5, updates + 1, 5), updates})
    assert records[-1]["global_step"] == updates * 8 * 16
    assert records[-1]["update_time"] > 0


class Broken(Exception):
    """Something that no one expected."""


def breaking(monkeypatch: pytest.MonkeyPatch, at_update: int) -> None:
    """Make the learner fail in the middle of its n-th update."""
    update = Learner.update

    def fail(self: Learner, rollout: Any) -> dict[str, float]:
        learned = update(self, rollout)
        if self.version == at_update:
            self.version -= 1
            raise Broken
        return learned

    monkeypatch.setattr(Learner, "update", fail)


def test_an_error_in_mid_update_saves_what_is_sound_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        breaking(patch, at_update=3)
        with pytest.raises(Broken):
            small_run(tmp_path, "--total-updates", "9")
    saved = load_checkpoint(tmp_path / "mario" / "checkpoints" / "latest.pt")
    assert saved.meta.global_update == 2
    assert saved.state["envs"] is None
    display = Quiet()
    small_run(tmp_path, "--total-updates", "4", display=display)
    assert any("episodes start over" in line for line in display.lines)
    assert [record["update"] for record in measured(tmp_path / "mario")] == [1, 2, 3, 4]


def test_a_checkpoint_of_another_architecture_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    small_run(tmp_path, "--total-updates", "1")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointError, match="another architecture"):
        small_run(tmp_path, "--total-updates", "2", "--hidden", "32")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_resumed_run_keeps_its_settings_where_no_flag_says_otherwise(tmp_path: Path) -> None:
    from warpzone.cli.train import settings

    small_run(tmp_path, "--total-updates", "1", "--hidden", "32", "--seed", "7", "--profile", "--resume", "")
    runs = ["--runs-dir", str(tmp_path)]
    kept = settings([*runs, "--seed", "8"], {})
    assert (kept.model.hidden, kept.run.seed, kept.collect.num_envs) == (32, 8, 8)
    assert not kept.watch.profile
    assert settings([*runs, "--fresh"], {}).model.hidden != 32
    assert settings([*runs, "--preset", "cpu"], {}).model.hidden != 32
    assert settings([*runs, "--run-name", "new"], {}).model.hidden != 32


def test_limits_in_steps_and_in_time_end_the_run(tmp_path: Path) -> None:
    by_steps = small_run(tmp_path, "--run-name", "steps", "--total-steps", "300")
    assert (by_steps.progress.update, by_steps.reason) == (3, "all steps are done")
    by_time = small_run(tmp_path, "--run-name", "time", "--time-limit", "0.01")
    assert by_time.reason == "the time limit was reached"
    assert by_time.progress.elapsed_s >= 0.6


def test_the_log_of_a_run_says_what_happened_with_the_prefixes_of_the_contract(tmp_path: Path) -> None:
    display = Quiet(interrupt_after=1)
    small_run(tmp_path, "--total-updates", "9", "--scripted-forward-frames", "60", display=display)
    small_run(tmp_path, "--total-updates", "2", display=display)
    log = (tmp_path / "mario" / "train.log").read_text()
    for start in (
        "[reward] scripted start of 1-1",
        "[env] constructing env 8/8",
        "[train][warn] interrupted",
    ):
        assert any(line.startswith(start) for line in display.lines)
        assert start in log
    assert any(line.startswith("[train] resuming from") for line in display.lines)


def test_the_heartbeat_tells_the_phases(tmp_path: Path) -> None:
    small_run(tmp_path, "--total-updates", "1")
    beats = [json.loads(line) for line in (tmp_path / "mario" / "heartbeat.jsonl").read_text().splitlines()]
    assert beats[-1]["phase"] == "closed"
    assert beats[-1]["update"] == 0
    assert beats[-1]["progress"] == 1.0


def test_a_profile_says_where_the_time_of_a_run_goes(tmp_path: Path) -> None:
    small_run(tmp_path, "--total-updates", "9", "--profile")
    lines = (tmp_path / "mario" / "profile" / "table.txt").read_text().splitlines()
    calls = {line.split()[0]: int(line.split()[1]) for line in lines[1:9]}
    # Five updates of sixteen steps.
    assert calls == {
        **dict.fromkeys(("inference", "sending", "emulation", "transfer", "recording"), 80),
        **dict.fromkeys(("targets", "learning", "replay"), 5),
    }


def test_a_run_that_stalls_can_be_told_to_stop_with_what_it_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, request, check = Learner.update, StopFlag.request, Heartbeat._check_stall
    stalling, asked = threading.Event(), threading.Event()

    def look(self: Heartbeat) -> None:
        # Not before the stall, and not after the first alarm: a slow machine is silent as well, and two alarms end
        # this process.
        if stalling.is_set():
            check(self)

    def note(self: StopFlag, reason: str) -> None:
        request(self, reason)
        stalling.clear()
        asked.set()

    def stall(self: Learner, rollout: Any) -> dict[str, float]:
        # Silent until the watchdog has seen it, however slow the machine is.
        if self.version == 2:
            stalling.set()
            asked.wait(60)
        return update(self, rollout)

    monkeypatch.setattr(Learner, "update", stall)
    monkeypatch.setattr(StopFlag, "request", note)
    monkeypatch.setattr(Heartbeat, "_check_stall", look)
    flags = ("--heartbeat-timeout", "3", "--on-stall", "stop", "--total-updates", "9")
    outcome = small_run(tmp_path, *flags)
    assert (outcome.exit_code, outcome.reason) == (3, "stopped by stall")
    assert load_checkpoint(tmp_path / "mario" / "checkpoints" / "latest.pt").meta.global_update == 3
    (dump,) = (tmp_path / "mario" / "diagnostics").glob("stall_2*.log")
    assert "in phase 'learn'" in dump.read_text()
    assert "in stall" in dump.read_text()


def test_a_stop_that_is_asked_for_during_a_recording_leaves_no_half_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_ends(*_: Any, **__: Any) -> Iterator[Any]:
        while True:
            yield np.zeros((8, 8, 3), np.uint8)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(recording, "episode_frames", never_ends)
    outcome = small_run(tmp_path, "--total-updates", "9", "--video-interval", "2")
    assert (outcome.exit_code, outcome.progress.update) == (130, 2)
    assert list((tmp_path / "mario" / "videos").iterdir()) == []
