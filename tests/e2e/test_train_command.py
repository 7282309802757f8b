"""`warpzone train` from the first update to the last: resumed, stopped, killed, on a full disk."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.small_runs import differences, lasting_state, measured
from warpzone.checkpoints.saving import load_checkpoint, read_meta
from warpzone.watch.fields import FIELDS
from warpzone.watch.metrics import read_metrics

from .commands import COMMAND, SMALL, Training, clean_environment, warpzone

QUIET = (*SMALL, "--no-record-video", "--no-enable-tensorboard")


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Training]:
    training = Training(tmp_path, *QUIET, "--total-updates", "100000")
    yield training
    if training.process.poll() is None:
        training.kill()


def latest(folder: Path) -> int:
    """The update that the run's `latest` is of, after reading all of it."""
    return load_checkpoint(folder / "runs" / "mario" / "checkpoints" / "latest.pt").meta.global_update


def test_a_run_trains_resumes_by_its_name_and_starts_over_beside_itself(tmp_path: Path) -> None:
    first = warpzone(tmp_path, "train", *QUIET, "--total-updates", "2")
    assert first.code == 0, first.err
    assert "[train] resume:   warpzone train --run-name mario --total-updates 4" in first.out
    assert "[env] constructing env 8/8" in first.out

    # Only what differs needs to be said: all else is as it was.
    second = warpzone(tmp_path, "train", "--total-updates", "4")
    assert second.code == 0, second.err
    assert "[train] resuming from runs/mario/checkpoints/latest.pt (latest; update 2, step 256)" in second.out
    records = read_metrics(tmp_path / "runs" / "mario")
    assert [record["global_step"] for record in records] == [128, 256, 384, 512]

    again = warpzone(tmp_path, "train", *QUIET, "--fresh", "--total-updates", "1")
    assert again.code == 0, again.err
    assert "resuming" not in again.out
    assert latest(tmp_path) == 4
    assert read_meta(tmp_path / "runs" / "mario-2" / "checkpoints" / "latest.pt").global_update == 1

    other = warpzone(
        tmp_path, "train", *QUIET, "--run-name", "heir", "--resume", "runs/mario/checkpoints/latest.pt",
        "--total-updates", "5",
    )  # fmt: skip
    assert "(--resume; update 4, step 512)" in other.out
    assert [record["update"] for record in read_metrics(tmp_path / "runs" / "heir")] == [5]

    found = warpzone(
        tmp_path, "train", *QUIET, "--run-name", "finder", "--resume", "search", "--total-updates", "6"
    )
    assert "[train] resuming from runs/heir/checkpoints/latest.pt (search; update 5, step 640)" in found.out

    grown = warpzone(tmp_path, "train", "--resume", "latest", "--hidden", "64", "--total-updates", "9")
    assert grown.code == 2
    assert "another architecture (hidden is 128 there and 64 here)" in grown.err
    assert json.loads((tmp_path / "runs" / "mario" / "config.json").read_text())["model"]["hidden"] == 128


def test_metrics_have_every_field_of_the_contract(tmp_path: Path) -> None:
    flags = (
        "--total-updates",
        "3",
        "--per",
        "--per-capacity",
        "256",
        "--per-batch-size",
        "32",
        "--step-limit",
        "20",
    )
    assert warpzone(tmp_path, "train", *QUIET, *flags).code == 0
    lines = (tmp_path / "runs" / "mario" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        assert set(FIELDS) <= set(json.loads(line))
    last = json.loads(lines[-1])
    # With replay and finished episodes, only a GPU, a flag, noise and a trail to imitate are missing here.
    without = {"gpu_util_last", "gpu_util_mean_window", "gpu_mem_used_mb"}
    without |= {"time_to_first_flag", "clear_rate_noisy", "loss_imitation"}
    assert {field for field in FIELDS if last[field] is None} <= without
    assert last["env_shaping_raw_sum"] == pytest.approx(last["env_shaping_scaled_sum"] / 0.02)
    assert last["env_shaping_raw_sum"] > 0
    assert 0 < last["env_positive_dx_ratio"] <= 1
    assert last["collect_share"] + last["learn_share"] <= 1
    assert last["env_steps_per_sec"] == pytest.approx(128 / last["update_time"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_saves_latest_and_says_how_to_go_on(
    number: signal.Signals, code: int, endless: Training, tmp_path: Path
) -> None:
    endless.wait_for_update(2)
    endless.signal(number)
    result = endless.end()
    assert result.code == code
    assert f"[train][warn] interrupted ({number.name})" in result.out
    assert "[train] resume:   warpzone train --run-name mario" in result.out
    assert "Traceback" not in result.err
    records = read_metrics(tmp_path / "runs" / "mario")
    assert latest(tmp_path) == records[-1]["update"] >= 2

    resumed = warpzone(tmp_path, "train", "--total-updates", str(latest(tmp_path) + 1))
    assert resumed.code == 0
    assert [r["update"] for r in read_metrics(tmp_path / "runs" / "mario")] == list(
        range(1, latest(tmp_path) + 1)
    )


def test_ctrl_c_ends_the_cpu_preset_within_an_update_or_two(tmp_path: Path) -> None:
    training = Training(
        tmp_path, "--preset", "cpu", "--device", "cpu", "--log-interval", "1", "--until-clear-rate", "0"
    )
    try:
        training.wait_for_update(1)
        training.signal(signal.SIGINT)
        training.wait_for_line("interrupted (SIGINT)")
        updates = len(training.metrics.read_bytes().splitlines())
        result = training.end()
    finally:
        if training.process.poll() is None:
            training.kill()
    assert result.code == 130
    assert 1 <= latest(tmp_path) <= updates + 2


def test_a_second_ctrl_c_stops_at_once_and_saves_nothing_half_done(tmp_path: Path) -> None:
    # An update that takes far longer than the test waits.
    training = Training(tmp_path, *QUIET, "--rollout-steps", "100000", "--total-updates", "1")
    try:
        training.wait_for_phase("collect")
        training.signal(signal.SIGINT)
        training.wait_for_line("interrupted (SIGINT)")
        training.signal(signal.SIGINT)
        result = training.end()
    finally:
        if training.process.poll() is None:
            training.kill()
    assert result.code == 130
    assert "[train][warn] interrupted again (SIGINT): stopping now" in result.out
    assert result.err == "warpzone: interrupted\n"
    assert list((tmp_path / "runs" / "mario").rglob("*.pt")) == []


def test_killed_in_mid_run_and_resumed_is_the_run_that_was_not_killed(tmp_path: Path) -> None:
    flags = (*QUIET, "--deterministic", "--step-limit", "30", "--latest-every-updates", "4")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    training = Training(killed, *flags, "--total-updates", "100000")
    training.wait_for_update(6)
    training.kill()
    saved = latest(killed)
    assert saved >= 4
    assert saved % 4 == 0
    assert warpzone(killed, "train", "--total-updates", str(saved + 4)).code == 0
    assert warpzone(whole, "train", *flags, "--total-updates", str(saved + 4)).code == 0
    a, b = whole / "runs" / "mario", killed / "runs" / "mario"
    assert measured(a) == measured(b)
    assert differences(lasting_state(a), lasting_state(b)) == []


def test_a_disk_that_is_full_from_the_start_is_said_in_one_sentence(tmp_path: Path) -> None:
    result = _with_file_limit(tmp_path, 1000, "--total-updates", "1")
    assert result.returncode == 2
    assert "can't be written (File too large): choose another --runs-dir or make room." in result.stderr
    assert "Traceback" not in result.stderr


def test_a_disk_that_fills_up_costs_new_checkpoints_but_not_the_old_one(tmp_path: Path) -> None:
    assert warpzone(tmp_path, "train", *QUIET, "--total-updates", "1").code == 0
    # Room for lines of text, not for the weights.
    result = _with_file_limit(tmp_path, 60_000, "--total-updates", "3", "--latest-every-updates", "1")
    assert result.returncode == 2
    assert result.stdout.count("the checkpoints already there are untouched; training continues") == 2
    assert "warpzone: could not save" in result.stderr
    assert "Traceback" not in result.stderr
    assert latest(tmp_path) == 1
    assert [r["update"] for r in read_metrics(tmp_path / "runs" / "mario")] == [1, 2, 3]


def _with_file_limit(folder: Path, most_bytes: int, *flags: str) -> subprocess.CompletedProcess[str]:
    """Train where no file may grow past a size, as on a disk that is full."""

    def limit() -> None:
        # Writing past the limit is then an error, EFBIG, and not a signal that kills.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.run(
        [*COMMAND, "train", *QUIET, *flags],
        cwd=folder,
        env={**clean_environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        preexec_fn=limit,
    )
