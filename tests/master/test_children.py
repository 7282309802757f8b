"""Children end when they are told to, and with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from warpzone.master.children import Crew, GroupProcess

PARENT = """
import sys, time
from pathlib import Path
from warpzone.master import children
child = children.GroupProcess([sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]))
print(child.pid, flush=True)
time.sleep(600)
"""


def wait_until_gone(pid: int, timeout_s: float = 30) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert os.getpgid(child) == child
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_until_gone(child)


def test_a_command_is_logged_and_its_end_is_seen(tmp_path: Path) -> None:
    crew = Crew(tmp_path / "logs")
    crew.start("version", ["--version"], seconds=60)
    crew.start("nonsense", ["dance"], seconds=60)
    over = {}
    while len(crew):
        over |= {child.name: child for child in crew.ended()}
        time.sleep(0.05)
    assert over["version"].process.returncode == 0
    assert over["nonsense"].process.returncode == 2
    assert "there is no command 'dance'" in over["nonsense"].last_words()
    assert (tmp_path / "logs" / "version.log").read_text().startswith("\n$ warpzone --version\n")


@pytest.mark.parametrize("own", [None, "active"])
def test_threads_of_a_child_wait_without_spinning_unless_told_otherwise(
    own: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if own:
        monkeypatch.setenv("OMP_WAIT_POLICY", own)
    child = GroupProcess(["printenv", "OMP_WAIT_POLICY"], tmp_path / "log")
    deadline = time.monotonic() + 60
    while child.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (tmp_path / "log").read_text() == f"{own or 'passive'}\n"


def test_a_training_is_not_stopped_before_it_has_learned_something(tmp_path: Path) -> None:
    record = tmp_path / "metrics.jsonl"
    crew = Crew(tmp_path)
    child = crew.start("page", ["play", "--port", "0"], seconds=0.0, record=record)
    time.sleep(0.5)
    assert crew.ended() == []
    assert child.stopped_at is None
    record.write_text("{}\n")
    deadline = time.monotonic() + 60
    while not crew.ended():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert child.stopped_at is not None
