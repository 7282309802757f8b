"""MPS is started for runs that share a GPU, and ends with the master. A script stands in for NVIDIA's program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.master.test_children import wait_until_gone
from warpzone.master import gpu_sharing, run
from warpzone.master.children import GroupProcess
from warpzone.master.gpu_sharing import GPUS, LOGS, PIPES, shared_gpu
from warpzone.master.opening import open_state
from warpzone.master.plan import MasterConfig, make_plan
from warpzone.master.state import read_state
from warpzone.master.work import Work

PROGRAM = """#!/bin/sh
pipes=${CUDA_MPS_PIPE_DIRECTORY:-$STAND_IN/default}
if [ "$1" = -f ]; then
    [ -e "$STAND_IN/broken" ] && exit 1
    [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || exit 1
    echo "-f on GPUs '$CUDA_VISIBLE_DEVICES'" >> "$STAND_IN/said"
    echo $$ > "$STAND_IN/pid"
    mkfifo "$pipes/control"
    read -r _ < "$pipes/control"
    rm "$pipes/control"
    exit
fi
read -r words
[ -p "$pipes/control" ] || exit 1
echo "$words" >> "$STAND_IN/said"
case $words in
    quit*) echo > "$pipes/control" ;;
    get_server_list) cat "$STAND_IN/servers" ;;
esac
"""
PARENT = """
import sys, time
from warpzone.master import gpu_sharing
from warpzone.master.plan import MasterConfig, make_plan
gpu_sharing.CHECK = ""
config = MasterConfig(stages="1", preset="gpu")
with gpu_sharing.shared_gpu(config, make_plan(config, cores=8), print) as variables:
    print(variables["CUDA_MPS_PIPE_DIRECTORY"], flush=True)
    time.sleep(600)
"""
CONFIG = MasterConfig(stages="1", preset="gpu")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="MPS is there for Linux alone")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, temporary = tmp_path / "stand-in", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    program = folder / "nvidia-cuda-mps-control"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (folder / "said").touch()
    (folder / "servers").write_text("4711\n")
    for name in (PIPES, LOGS, GPUS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN", str(folder))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(gpu_sharing, "CHECK", "")
    monkeypatch.setattr(gpu_sharing, "START_S", 60.0)
    return folder


def sharing(said: list[str], config: MasterConfig = CONFIG) -> AbstractContextManager[dict[str, str]]:
    return shared_gpu(config, make_plan(config, cores=8), said.append)


def told(stand_in: Path) -> list[str]:
    """What it was told, without the repetitions of those who wait for it."""
    return list(dict.fromkeys((stand_in / "said").read_text().splitlines()))


def left(stand_in: Path) -> list[Path]:
    return list((stand_in.parent / "tmp").iterdir())


def test_it_is_started_reaches_the_children_alone_and_ends(stand_in: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with sharing(said) as variables:
        child = GroupProcess(["printenv", PIPES, LOGS], tmp_path / "log", variables)
        while child.poll() is None:
            time.sleep(0.01)
        assert variables.keys() == {PIPES, LOGS}
        assert (tmp_path / "log").read_text().split() == list(variables.values())
        assert PIPES not in os.environ
        daemon = int((stand_in / "pid").read_text())
        os.kill(daemon, 0)
    assert told(stand_in) == ["-f on GPUs ''", "get_server_list", "quit -t 60"]
    assert (said, left(stand_in)) == ([], [])
    assert wait_until_gone(daemon)


def test_the_state_says_whether_it_was_on(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explore(work: Work) -> None:
        child = work.crew._spawn(["printenv", PIPES], tmp_path / "log")
        while child.poll() is None:
            time.sleep(0.01)

    monkeypatch.setattr(run, "PHASES", {"explore": explore})
    config = replace(CONFIG, out=tmp_path)
    plan = make_plan(config, cores=8)
    for on in (True, False):
        state = open_state(config, plan, "abc")
        state.phases["explore"].status = "waiting"
        assert run._work(config, plan, state, {"cpu": "x"}, lambda state: None, lambda line: None, None) == 0
        saved = read_state(tmp_path)
        assert saved is not None
        assert saved.machine == {"cpu": "x", "cuda_mps": on}
        no_server(stand_in, monkeypatch)
    assert (tmp_path / "log").read_text().count("/pipes\n") == 1


def test_it_ends_after_an_error_too(stand_in: Path) -> None:
    with pytest.raises(KeyboardInterrupt), sharing([]):
        raise KeyboardInterrupt
    assert told(stand_in)[-1] == "quit -t 60"
    assert left(stand_in) == []


def test_children_number_the_gpus_that_the_server_sees(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GPUS, "3,GPU-8f")
    with sharing([]) as variables:
        assert variables[GPUS] == "0,1"
    assert told(stand_in)[0] == "-f on GPUs '3,GPU-8f'"


def test_it_does_not_outlive_a_killed_master(stand_in: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pipes = Path(parent.stdout.readline().strip())
    daemon = int((stand_in / "pid").read_text())
    os.kill(daemon, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_until_gone(daemon)
    deadline = time.monotonic() + 10
    while pipes.parent.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert told(stand_in)[-1] == "quit -t 60"


def broken_daemon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "broken").touch()
    monkeypatch.setattr(gpu_sharing, "START_S", 0.1)


def broken_cuda(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_sharing, "CHECK", "raise RuntimeError('no device')")


def slow_cuda(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_sharing, "CHECK", "import time; time.sleep(600)")
    monkeypatch.setattr(gpu_sharing, "CHECK_S", 0.1)


def no_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "servers").write_text("")


def no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))


@pytest.mark.parametrize(
    ("breaks", "why"),
    [
        (broken_daemon, "its daemon does not answer"),
        (broken_cuda, "RuntimeError: no device"),
        (slow_cuda, "CUDA did not start in 0 s"),
        (no_server, "no server was started"),
        (no_folder, "No such file or directory"),
    ],
)
def test_what_fails_is_said_and_ended_at_once(
    breaks: Callable[[Path, pytest.MonkeyPatch], None],
    why: str,
    stand_in: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    breaks(stand_in, monkeypatch)
    with sharing(said) as variables:
        assert variables == {}
        assert left(stand_in) == []
    assert len(said) == 1
    assert said[0].startswith("[master] no MPS, so runs take turns on the GPU: ")
    assert why in said[0]


@pytest.mark.parametrize(("named", "runs"), [(True, True), (True, False), (False, True)])
def test_the_daemon_of_somebody_else_is_left_alone(
    named: bool, runs: bool, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = stand_in / "own" if named else stand_in / "default"
    own.mkdir()
    if named:
        monkeypatch.setenv(PIPES, str(own))
    if runs:
        os.mkfifo(own / "control")
    said: list[str] = []
    with sharing(said) as variables:
        assert variables == ({PIPES: str(own) if named else "/tmp/nvidia-mps"} if runs else {})
    assert told(stand_in) == (["get_server_list"] if runs else [])
    assert (said, left(stand_in)) == ([], [])


@pytest.mark.parametrize("change", [{"parallel": 1}, {"preset": "cpu"}, {"cluster": "local"}, {}])
def test_without_need_or_program_nothing_happens(
    change: dict[str, object], stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not change:
        monkeypatch.setenv("PATH", "/nowhere")
    said: list[str] = []
    with sharing(said, replace(CONFIG, **change)) as variables:  # type: ignore[arg-type]
        assert variables == {}
    assert (said, told(stand_in), left(stand_in)) == ([], [], [])
