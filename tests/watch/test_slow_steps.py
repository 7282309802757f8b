"""Several slow steps in a window make one file that shows where they were slow."""

from __future__ import annotations

import time
from pathlib import Path

from warpzone.watch.slow_steps import SlowStepTracer


def read_the_cartridge(seconds: float = 0.05) -> None:
    time.sleep(seconds)


def traces(folder: Path) -> list[Path]:
    return list(folder.glob("slow_step_trace_*.log"))


def test_the_stacks_are_taken_inside_the_slow_step(tmp_path: Path) -> None:
    tracer = SlowStepTracer(tmp_path, threshold_s=0.01, window_s=60, count=3)
    for n in range(10):
        with tracer.step():
            read_the_cartridge(0.3)
        assert len(traces(tmp_path)) == (n >= 2)
    tracer.close()
    (trace,) = traces(tmp_path)
    assert "read_the_cartridge" in trace.read_text()
    assert "3 steps of more than 0.01 s" in trace.read_text()


def test_one_slow_step_is_nothing(tmp_path: Path) -> None:
    # A step that does nothing may be kept waiting too, but not for a second.
    tracer = SlowStepTracer(tmp_path, threshold_s=1.0, window_s=60, count=2)
    with tracer.step():
        read_the_cartridge(1.1)
    for _ in range(20):
        with tracer.step():
            pass
    tracer.close()
    assert traces(tmp_path) == []


def test_slow_steps_of_an_earlier_window_do_not_count(tmp_path: Path) -> None:
    tracer = SlowStepTracer(tmp_path, threshold_s=0.01, window_s=0.04, count=2)
    for _ in range(3):
        with tracer.step():
            read_the_cartridge()
    tracer.close()
    assert traces(tmp_path) == []


def test_a_threshold_of_zero_is_off(tmp_path: Path) -> None:
    tracer = SlowStepTracer(tmp_path, threshold_s=0, count=1)
    with tracer.step():
        read_the_cartridge()
    tracer.close()
    assert traces(tmp_path) == []
