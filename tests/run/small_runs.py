"""Training runs small enough for a test, and what two runs are compared by."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch

from warpzone.checkpoints.saving import load_checkpoint
from warpzone.cli.train import settings
from warpzone.run.config import TrainConfig
from warpzone.run.loop import Outcome, train
from warpzone.watch.metrics import read_metrics

SMALL = [
    *("--preset", "cpu", "--device", "cpu", "--torch-threads", "1", "--env-threads", "1"),
    *("--num-envs", "8", "--rollout-steps", "16", "--minibatch-size", "64", "--log-interval", "1"),
    *("--until-clear-rate", "0", "--no-record-video", "--no-enable-tensorboard"),
]
"""Flags of a run that takes a fraction of a second for each update."""

TIMINGS = {
    *(
        "timestamp",
        "elapsed_s",
        "env_steps_per_sec",
        "updates_per_sec",
        "update_time",
        "rollout_time",
        "learn_time",
    ),
    *("collect_share", "learn_share", "time_to_first_flag", "replay_sample_time_ms"),
    *("cpu_percent", "rss_mb", "memory_percent", "gpu_util_last", "gpu_util_mean_window", "gpu_mem_used_mb"),
}
"""Metrics that depend on the machine and the moment."""


class Quiet:
    """A display that remembers instead of showing, and presses Ctrl+C after some update."""

    def __init__(self, interrupt_after: int = 0) -> None:
        self.interrupt_after = interrupt_after
        self.lines: list[str] = []
        self.records: list[dict[str, Any]] = []

    def update(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if record["update"] == self.interrupt_after:
            os.kill(os.getpid(), signal.SIGINT)

    def say(self, line: str) -> None:
        self.lines.append(line)


def small_config(runs: Path, *flags: str) -> TrainConfig:
    return settings([*SMALL, "--runs-dir", str(runs), *flags], {})


def small_run(runs: Path, *flags: str, display: Quiet | None = None) -> Outcome:
    return train(small_config(runs, *flags), display or Quiet())


def measured(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run without what is timing."""
    return [{k: v for k, v in record.items() if k not in TIMINGS} for record in read_metrics(folder)]


def saved_state(folder: Path) -> dict[str, Any]:
    """What the run's `latest` holds."""
    state = load_checkpoint(folder / "checkpoints" / "latest.pt").state
    assert isinstance(state, dict)
    return state


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """The places at which two saved states are not the same bits."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = [k for k in a if k not in b] + [k for k in b if k not in a]
        return [f"{where}/{k} is on one side only" for k in keys] + [
            line for k in a if k in b for line in differences(a[k], b[k], f"{where}/{k}")
        ]
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        return [line for i in range(len(a)) for line in differences(a[i], b[i], f"{where}[{i}]")]
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        same = a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
    elif hasattr(a, "tolist") and hasattr(b, "tolist"):
        same = bool(a.tolist() == b.tolist())
    else:
        same = type(a) is type(b) and bool(a == b)
    return [] if same else [where]


def lasting_state(folder: Path) -> dict[str, Any]:
    """The saved state without what is timing."""
    state = saved_state(folder)
    del state["progress"]["elapsed_s"], state["episodes"]["first_flag_s"]
    return state
