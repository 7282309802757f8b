"""Trials of a sweep and trainings of a master as jobs on a cluster, also when what runs them is lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cluster.hosted import started
from tests.run.small_runs import SMALL
from warpzone.cli import sweep as sweep_command
from warpzone.cli.train import settings
from warpzone.cluster.commands import ClusterProcess
from warpzone.cluster.connection import Cluster
from warpzone.cluster.trials import run_trials
from warpzone.errors import ConfigError
from warpzone.run.control import TOKEN_FILE, send_request
from warpzone.watch.metrics import read_metrics

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'warpzone[sweep]'")


def test_trials_run_at_once_and_again_where_one_is_lost(local: Cluster, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 's.db'}"
    study = optuna.create_study(study_name="s", storage=storage, direction="maximize")
    flags = [*SMALL, "--runs-dir", str(tmp_path), "--run-name", "s", "--total-updates", "20", "--trails", ""]
    told: list[int] = []
    killed: list[int] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 180
        while not killed and time.monotonic() < deadline:
            for process in list(started("ray::_trial"))[:1]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed.append(process.pid)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    run_trials(
        local, study, storage, settings(flags, {}), ("learning_rate", "gamma"), trials=2, every=10, cpus=4, gpus=0,
        told=lambda trial, values, score, was_cut: (study.tell(trial, score), told.append(trial.number)),
    )  # fmt: skip
    killer.join(180)
    assert killed
    assert sorted(told) == [0, 1]
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 2
    # The verdicts came from the nodes to the study.
    assert all(10 in trial.intermediate_values for trial in study.trials)
    with pytest.raises(ConfigError, match="No node has the 99 CPUs"):
        run_trials(
            local, study, storage, settings(flags, {}), ("gamma",), trials=1, every=1, cpus=99, gpus=0,
            told=lambda *of: None,
        )  # fmt: skip


def test_a_training_whose_node_is_lost_resumes_elsewhere(local: Cluster, tmp_path: Path) -> None:
    words = [
        *("train", *SMALL, "--runs-dir", str(tmp_path), "--run-name", "specialist-1-1", "--plain"),
        *("--time-limit", "0", "--latest-every-updates", "1"),
    ]
    log = tmp_path / "specialist-1-1.log"
    job = ClusterProcess(local, [sys.executable, "-m", "warpzone.cli.main", *words], log, cpus=1)
    run, deadline = tmp_path / "specialist-1-1", time.monotonic() + 240

    def updates() -> int:
        """The last that is on record."""
        assert time.monotonic() < deadline, log.read_text()
        assert job.poll() is None, log.read_text()
        time.sleep(0.1)
        return max((record["update"] for record in read_metrics(run)), default=0)

    while updates() < 10:
        pass
    [runner] = started("ray::Runner")
    runner.kill()
    # It has no end of its own, which might come before the loss: once it has gone on elsewhere, it is told to stop.
    while "[train] resuming from" not in log.read_text():
        updates()
    before = updates()
    while updates() == before:
        pass
    send_request(run, (run / TOKEN_FILE).read_text().strip(), {"command": "stop"})
    while job.poll() is None:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    assert job.returncode == 0, log.read_text()
    assert job.restarts == 1
    records = [record["update"] for record in read_metrics(run)]
    assert records == list(range(1, len(records) + 1))


@pytest.mark.parametrize("cpus", [1, 99])
def test_a_command_that_was_told_to_stop_is_not_started_again(
    local: Cluster, tmp_path: Path, cpus: int
) -> None:
    deaf = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print(os.getpid(), flush=True); time.sleep(600)"
    )
    words = ["python", "-c", deaf, "--runs-dir", str(tmp_path), "--run-name", "r"]
    log, deadline = tmp_path / "r.log", time.monotonic() + 120
    job = ClusterProcess(local, words, log, cpus)
    while cpus == 1 and not (job._has_begun and log.exists() and "\n" in log.read_text()):
        assert time.monotonic() < deadline
        assert job.poll() is None
        time.sleep(0.1)
    job.send_signal(signal.SIGTERM)
    # Ray has no 99 CPUs: that one never began, and there is nobody to lose.
    for runner in started("ray::Runner") if cpus == 1 else set():
        # That of the test before may still be on its way out.
        with suppress(psutil.NoSuchProcess):
            runner.kill()
    while job.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (job.returncode, job.restarts) == (-signal.SIGTERM, 0)
    if cpus == 1:
        with suppress(ProcessLookupError):
            os.kill(int(log.read_text()), signal.SIGKILL)


def test_a_sweep_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ConfigError, match="--trial-cpus must be at least 1"):
        sweep_command.Config(trial_cpus=0)
