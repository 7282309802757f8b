"""A run is trained by one process at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpzone.errors import ConfigError
from warpzone.run.lock import LOCK_FILE, RunLock
from warpzone.run.log import LOG_FILE

from .small_runs import SMALL, small_run


def start_training(runs: Path) -> subprocess.Popen[bytes]:
    flags = [*SMALL, "--runs-dir", str(runs), "--run-name", "a", "--plain", "--latest-every-updates", "1"]
    trainer = subprocess.Popen(
        [sys.executable, "-m", "warpzone.cli.main", "train", *flags], stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (runs / "a" / "checkpoints" / "latest.json").exists():
        assert trainer.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return trainer


def test_a_run_that_is_being_trained_is_refused_until_its_process_is_gone(tmp_path: Path) -> None:
    trainer = start_training(tmp_path)
    try:
        config = (tmp_path / "a" / "config.json").read_bytes()
        said = (tmp_path / "a" / LOG_FILE).read_text().count("constructing env")
        with pytest.raises(ConfigError, match=rf"another process \(number {trainer.pid}\)"):
            small_run(tmp_path, "--run-name", "a", "--total-updates", "100000", "--seed", "5")
        assert (tmp_path / "a" / "config.json").read_bytes() == config
        assert (tmp_path / "a" / LOG_FILE).read_text().count("constructing env") == said > 0
        assert trainer.poll() is None
    finally:
        # However it ends, the lock goes with it.
        os.kill(trainer.pid, signal.SIGKILL)
        trainer.wait()
    outcome = small_run(tmp_path, "--run-name", "a", "--total-updates", "1")
    assert outcome.progress.update >= 1


def test_a_folder_whose_lock_cant_be_opened_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a" / LOCK_FILE).mkdir(parents=True)
    with pytest.raises(ConfigError, match="can't be written"):
        small_run(tmp_path, "--run-name", "a", "--total-updates", "1")


def test_a_child_of_the_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        lock.close()
        held = subprocess.run([sys.executable, "-c", TAKE, str(tmp_path)], check=False, capture_output=True)
        assert held.returncode == 0, held.stderr.decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert int((tmp_path / LOCK_FILE).read_text()) > 0


TAKE = (
    "import sys, pathlib; from warpzone.run.lock import RunLock; RunLock(pathlib.Path(sys.argv[1])).close()"
)


def test_one_process_does_not_train_a_run_twice_either(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with pytest.raises(ConfigError, match="is being trained by this process"):
        RunLock(tmp_path)
    # Being refused does not let go of the lock.
    held = subprocess.run([sys.executable, "-c", TAKE, str(tmp_path)], check=False, capture_output=True)
    assert b"another process" in held.stderr
    lock.close()
    RunLock(tmp_path).close()
