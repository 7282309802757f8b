"""Processor, memory and GPU use, sampled by a thread through psutil and NVML. Missing values are None."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import psutil

WINDOW_SAMPLES = 100

GpuProbe = Callable[[], tuple[float, float] | None]
"""Returns utilisation in percent and memory in use in MiB, or None without a GPU."""


class ResourceMonitor:
    """Samples at an interval; the training loop reads `latest` at no cost."""

    def __init__(
        self, interval_s: float = 5.0, *, window: int = WINDOW_SAMPLES, gpu: GpuProbe | None = None
    ) -> None:
        self._interval_s = interval_s
        self._gpu = gpu if gpu is not None else nvml_probe()
        self._utils: deque[float] = deque(maxlen=window)
        self._process = psutil.Process()
        self._latest: dict[str, float | None] = {}
        self._closing = threading.Event()
        self.sample()
        self._thread = threading.Thread(target=self._run, name="resources", daemon=True)
        self._thread.start()

    def latest(self) -> dict[str, float | None]:
        """`gpu_util_last`, `gpu_util_mean_window`, `gpu_mem_used_mb`, `cpu_percent`, `rss_mb`, `memory_percent`."""
        return dict(self._latest)

    def sample(self) -> None:
        measured = self._gpu()
        util, memory_mb = measured if measured is not None else (None, None)
        if util is not None:
            self._utils.append(util)
        # Replaced as a whole, so that a reader on another thread never sees half of it.
        self._latest = {
            "gpu_util_last": util,
            "gpu_util_mean_window": sum(self._utils) / len(self._utils) if self._utils else None,
            "gpu_mem_used_mb": memory_mb,
            "cpu_percent": self._process.cpu_percent(),
            "rss_mb": self._process.memory_info().rss / 2**20,
            "memory_percent": psutil.virtual_memory().percent,
        }

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            self.sample()


def nvml_probe(device_index: int = 0) -> GpuProbe:
    """A probe of the GPU that torch calls `cuda:<device_index>`; it returns None where NVML or the GPU is missing."""
    try:
        import pynvml
    except ImportError:
        return lambda: None
    try:
        pynvml.nvmlInit()
        handle = _handle(pynvml, device_index)
    except pynvml.NVMLError:
        return lambda: None

    def probe() -> tuple[float, float] | None:
        try:
            util = float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
            return util, pynvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20
        except pynvml.NVMLError:
            return None

    return probe


def _handle(pynvml: Any, device_index: int) -> Any:
    # NVML counts all devices of the machine, torch only those that CUDA_VISIBLE_DEVICES names.
    visible = [one.strip() for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    name = visible[device_index] if device_index < len(visible) else str(device_index)
    if name.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    return pynvml.nvmlDeviceGetHandleByUUID(name)
