"""Resource numbers are windowed; what is not there is null."""

from __future__ import annotations

from warpzone.watch.fields import FIELDS
from warpzone.watch.resources import ResourceMonitor, nvml_probe


def test_gpu_use_is_averaged_over_the_window() -> None:
    utils = iter([10.0, 20.0, 30.0, 40.0])
    monitor = ResourceMonitor(3600, window=2, gpu=lambda: (next(utils), 512.0))
    for _ in range(3):
        monitor.sample()
    monitor.close()
    latest = monitor.latest()
    assert latest["gpu_util_last"] == 40.0
    assert latest["gpu_util_mean_window"] == 35.0
    assert latest["gpu_mem_used_mb"] == 512.0


def test_no_gpu_is_null_and_the_process_is_still_measured() -> None:
    monitor = ResourceMonitor(3600, gpu=lambda: None)
    monitor.close()
    latest = monitor.latest()
    assert [latest[f] for f in FIELDS if f.startswith("gpu_")] == [None] * 3
    assert latest["rss_mb"] is not None
    assert latest["rss_mb"] > 1


def test_asking_nvml_never_fails() -> None:
    measured = nvml_probe(device_index=99)()
    assert measured is None
