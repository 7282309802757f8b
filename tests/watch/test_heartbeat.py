"""A run shows that it lives; one that does not is named, with the stacks of all its threads."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warpzone.watch.heartbeat import Heartbeat
from warpzone.watch.jsonl import read_records
from warpzone.watch.stacks import format_stacks, native_threads


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


class Clock:
    """A clock that stands still until it is set, so that only a test's own silence is a stall."""

    time, strftime = staticmethod(time.time), staticmethod(time.strftime)

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("warpzone.watch.heartbeat.time", clock)
    return clock


def wait_for_a_look(path: Path) -> None:
    """Until the watchdog has looked at the time as it is now: it does so after each of its records."""
    before = len(path.read_bytes().splitlines())
    wait_until(lambda: len(path.read_bytes().splitlines()) >= before + 2)


def test_records_have_phase_progress_and_health(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat.jsonl"
    heartbeat = Heartbeat(path, interval_s=0.02, timeout_s=60)
    heartbeat.beat("rollout", progress=0.25, update=7)
    wait_until(lambda: any(r["phase"] == "rollout" for r in read_records(path)))
    heartbeat.close("interrupt")
    records = list(read_records(path))
    rollout = next(r for r in records if r["phase"] == "rollout")
    assert rollout["progress"] == 0.25
    assert rollout["update"] == 7
    assert rollout["rss_mb"] > 1
    assert rollout["threads"] >= 2
    assert records[-1]["phase"] == "interrupt"
    assert not any(r["stalled"] for r in records)


def test_a_rollout_that_advances_is_no_stall(tmp_path: Path, clock: Clock) -> None:
    alarms: list[int] = []
    path = tmp_path / "heartbeat.jsonl"
    heartbeat = Heartbeat(path, interval_s=0.01, timeout_s=3.0, on_stall=alarms.append)
    heartbeat.beat("collect")
    for step in range(16):
        heartbeat.advance((step + 1) / 16)
        clock.now += 2.5
        wait_for_a_look(path)
    heartbeat.close()
    assert alarms == []
    records = list(read_records(path))
    assert {"collect"} <= {r["phase"] for r in records}
    assert records[-1]["progress"] == 1.0


def test_a_stall_names_the_phase_and_dumps_all_stacks_a_few_times_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    alarms: list[int] = []
    path = tmp_path / "heartbeat.jsonl"
    heartbeat = Heartbeat(path, interval_s=0.01, timeout_s=1.0, on_stall=alarms.append)

    def hang_in_the_emulator(release: threading.Event) -> None:
        release.wait()

    release = threading.Event()
    hanging = threading.Thread(target=hang_in_the_emulator, args=(release,), name="collector")
    hanging.start()
    heartbeat.beat("rollout")
    for silent_s in range(1, 9):
        clock.now = silent_s
        wait_for_a_look(path)
    heartbeat.beat("rollout")
    release.set()
    hanging.join()
    wait_for_a_look(path)
    heartbeat.close()
    # After one second, two, four and eight.
    assert alarms == [1, 2, 3, 4]
    assert "continuing in phase 'rollout' after a stall" in capsys.readouterr().out
    dumps = sorted((tmp_path / "diagnostics").glob("stall_2*.log"))
    assert len(dumps) == 4
    text = dumps[0].read_text()
    assert "phase 'rollout'" in text
    assert "hang_in_the_emulator" in text
    assert "thread collector" in text


def test_a_timeout_of_zero_never_alarms(tmp_path: Path) -> None:
    heartbeat = Heartbeat(tmp_path / "heartbeat.jsonl", interval_s=0.01, timeout_s=0)
    time.sleep(0.05)
    heartbeat.close()
    heartbeat.close()
    assert not (tmp_path / "diagnostics").exists()


def test_native_code_that_holds_the_interpreter_is_caught_as_well(tmp_path: Path) -> None:
    code = (
        "import ctypes, sys; from pathlib import Path; from warpzone.watch.heartbeat import Heartbeat\n"
        "heartbeat = Heartbeat(Path(sys.argv[1]), timeout_s=1.0, interval_s=0.05)\n"
        "def stuck_in_native_code(): ctypes.PyDLL(None).getchar()\n"
        "stuck_in_native_code()\n"
        "heartbeat.close()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "heartbeat.jsonl")]
    stacks = tmp_path / "diagnostics" / "stall_interpreter.log"
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            wait_until(lambda: stacks.exists() and "stuck_in_native_code" in stacks.read_text())
            # The end of its input releases it.
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "stuck_in_native_code" in stacks.read_text()


def test_stacks_show_this_function_and_native_threads() -> None:
    page = format_stacks("because")
    assert "because" in page
    assert "test_stacks_show_this_function_and_native_threads" in page
    if Path("/proc/self/task").exists():
        assert len(native_threads()) >= 1
        assert "native threads" in page
