"""Where the time goes: a torch profiler trace of a few updates, NVTX ranges, and a table of phases."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

_OFF = nullcontext()
_nvtx: Any = torch.cuda.nvtx
_active: UpdateProfiler | None = None


def phase(name: str) -> AbstractContextManager[None]:
    """Names what the block does (`emulation`, `inference`, `learning`, ...) while a profile is taken.

    Otherwise it only reads one global.
    """
    return _OFF if _active is None else _active.measured(name)


class UpdateProfiler:
    """Profiles `updates` updates after letting `skip` pass (compilation and warm-up); call `step` after each.

    Afterwards `folder` has `trace.json` (for Perfetto or chrome://tracing) and `table.txt`, which is also printed.
    """

    def __init__(self, folder: Path, *, updates: int = 5, skip: int = 3) -> None:
        self._folder = folder
        self._updates = updates
        self._skip = skip
        self._seen = 0
        self._began_s = 0.0
        self._profile: Any = None
        self._lock = threading.Lock()
        self._phases: dict[str, tuple[int, float]] = {}
        self._has_cuda = torch.cuda.is_available()
        if skip == 0:
            self._start()

    def step(self) -> None:
        self._seen += 1
        if self._seen == self._skip:
            self._start()
        elif self._seen == self._skip + self._updates:
            self.close()

    def close(self) -> None:
        """Stop and write the results so far; may be called again."""
        global _active
        if self._profile is None:
            return
        _active = None
        wall_s = time.perf_counter() - self._began_s
        profile, self._profile = self._profile, None
        profile.stop()
        self._folder.mkdir(parents=True, exist_ok=True)
        profile.export_chrome_trace(str(self._folder / "trace.json"))
        sort_by = "self_cuda_time_total" if self._has_cuda else "self_cpu_time_total"
        table = phase_table(self._phases, wall_s)
        operations = profile.key_averages().table(sort_by=sort_by, row_limit=25)
        (self._folder / "table.txt").write_text(f"{table}\n\n{operations}\n")
        print(f"[train] profile of {max(0, self._seen - self._skip)} updates in {self._folder}\n{table}")

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        if self._has_cuda:
            _nvtx.range_push(name)
        began_s = time.perf_counter()
        try:
            with torch.profiler.record_function(name):
                yield
        finally:
            took_s = time.perf_counter() - began_s
            if self._has_cuda:
                _nvtx.range_pop()
            with self._lock:
                calls, total_s = self._phases.get(name, (0, 0.0))
                self._phases[name] = (calls + 1, total_s + took_s)

    def _start(self) -> None:
        global _active
        kinds = [torch.profiler.ProfilerActivity.CPU]
        if self._has_cuda:
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        self._profile = torch.profiler.profile(activities=kinds)
        self._profile.start()
        self._began_s = time.perf_counter()
        _active = self


def phase_table(phases: dict[str, tuple[int, float]], wall_s: float) -> str:
    """Phases by the time they took. Phases on several threads can sum to more than the wall time."""
    rows = [f"{'phase':<16}{'calls':>8}{'total ms':>12}{'mean ms':>12}{'of wall':>9}"]
    for name, (calls, total_s) in sorted(phases.items(), key=lambda item: -item[1][1]):
        share = total_s / wall_s if wall_s > 0 else 0.0
        rows.append(f"{name:<16}{calls:>8}{1e3 * total_s:>12.2f}{1e3 * total_s / calls:>12.3f}{share:>9.1%}")
    return "\n".join(rows)
