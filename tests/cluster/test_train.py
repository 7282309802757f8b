"""Runs with environments on a cluster: the same learning as in process, faults, and what is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.hosted import started
from tests.run.small_runs import Quiet, differences, lasting_state, measured, small_config, small_run
from warpzone.checkpoints.finding import find_resume
from warpzone.cluster.build import host_environments
from warpzone.cluster.connection import Cluster
from warpzone.errors import ConfigError
from warpzone.run.build import Placement
from warpzone.run.config import TrainConfig
from warpzone.run.loop import Outcome
from warpzone.run.loop import train as train_here

HOSTS = ["--cluster", "local", "--env-hosts", "2", "--trails", ""]
OF_HOSTS = ("hosts", "host_restarts", "episodes_lost", "bytes_per_decision")


def train(cluster: Cluster, config: TrainConfig, display: Quiet | None = None) -> Outcome:
    return train_here(config, display or Quiet(), Placement(partial(host_environments, cluster)))


@pytest.mark.parametrize("groups", ["2", "4"])
def test_a_run_on_hosts_learns_the_same_bits_and_resumes(local: Cluster, tmp_path: Path, groups: str) -> None:
    both = ["--stages", "1-1,1-2", "--curriculum", "progress", "--env-groups", groups]
    here, there = ["--trails", "", "--double-buffer", *both], [*HOSTS, *both]
    small_run(tmp_path / "here", *here, "--total-updates", "6")
    train(local, small_config(tmp_path / "there", *there, "--total-updates", "3"))
    train(local, small_config(tmp_path / "there", *there, "--total-updates", "6"))
    records = measured(tmp_path / "there" / "mario")
    assert [{k: v for k, v in r.items() if k not in OF_HOSTS} for r in records] == [
        {k: v for k, v in r.items() if k not in OF_HOSTS} for r in measured(tmp_path / "here" / "mario")
    ]
    assert (
        differences(lasting_state(tmp_path / "here" / "mario"), lasting_state(tmp_path / "there" / "mario"))
        == []
    )
    assert [len(r["hosts"]) for r in records] == [2] * 6


def test_hosts_that_are_killed_do_not_stop_a_run(local: Cluster, tmp_path: Path) -> None:
    ended = threading.Event()
    # Those of the test before may still be on their way out.
    others = started("ray::Host")
    config = small_config(tmp_path, *HOSTS, "--total-updates", "40", "--host-timeout", "20")

    def kill_one() -> bool:
        for host in started("ray::Host") - others:
            with suppress(psutil.NoSuchProcess):
                host.kill()
                return True
        return False

    class Killing(Quiet):
        def update(self, record: dict[str, Any]) -> None:
            super().update(record)
            # The second while they play.
            if record["update"] == 10:
                assert kill_one()

    def kill_at_the_start() -> None:
        while not ended.wait(0.2) and not kill_one():
            pass

    display = Killing()
    killer = threading.Thread(target=kill_at_the_start, daemon=True)
    killer.start()
    try:
        outcome = train(local, config, display)
    finally:
        # Or it would kill the hosts of the next test.
        ended.set()
        killer.join()
    assert outcome.progress.update == 40
    last = display.records[-1]
    assert last["global_step"] == 40 * 8 * 16
    assert last["host_restarts"] >= 1
    # Every environment of a host, in both groups.
    assert 4 <= last["episodes_lost"] <= last["host_restarts"] * 4


def test_the_command_joins_a_cluster_by_its_address(local: Cluster, tmp_path: Path) -> None:
    words = "--preset cpu --device cpu --plain --until-clear-rate 0 --no-record-video --no-enable-tensorboard"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "warpzone.cli.main", "train", *words.split(), "--runs-dir", str(tmp_path)),
            *("--cluster", local.address, "--env-hosts", "2", "--envs-per-host", "4", "--minibatch-size", "64"),
            *("--rollout-steps", "16", "--total-updates", "2"),
        ],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 hosts of 4 environments" in done.stdout
    assert (tmp_path / "mario" / "checkpoints" / "latest.pt").exists()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--env-hosts", "2"], "need --cluster"),
        (["--cluster", "local", "--env-hosts", "3"], "do not divide among 3 hosts"),
        (["--cluster", "local", "--env-hosts", "0"], "at least 1"),
        (["--cluster", "local", "--host-timeout", "0"], "more than 0 seconds"),
        (["--cluster", "local", "--backend", "nes-py"], "native engine"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, flags: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        small_config(tmp_path, *flags)


@pytest.mark.parametrize("fault", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)])
def test_a_head_that_dies_or_hangs_ends_the_run_with_a_sentence_and_a_checkpoint(
    tmp_path: Path, fault: signal.Signals
) -> None:
    words = "--preset cpu --device cpu --plain --until-clear-rate 0 --no-record-video --no-enable-tensorboard"
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "warpzone.cli.main", "train", *words.split(), "--runs-dir", str(tmp_path)),
            *("--cluster", "local", "--env-hosts", "1", "--envs-per-host", "4", "--minibatch-size", "64"),
            *("--rollout-steps", "16", "--log-interval", "1", "--time-limit", "8"),
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    metrics, deadline = tmp_path / "mario" / "metrics.jsonl", time.monotonic() + 180
    while not metrics.exists() or metrics.read_text().count("\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    [head] = started("gcs_server", by=running.pid)
    head.send_signal(fault)
    try:
        _, errors = running.communicate(timeout=120)
    finally:
        with suppress(psutil.NoSuchProcess):
            head.kill()
    assert running.returncode == 2, errors
    assert "The head of the Ray cluster" in errors
    assert "Traceback" not in errors
    source = find_resume(tmp_path / "mario")
    assert source is not None
    assert source.meta.global_update >= 2
