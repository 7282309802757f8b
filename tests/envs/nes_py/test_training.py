"""Training on nes-py goes on when a worker is killed or stopped, and the log says what happened."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpzone.collect.config import CollectConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.run.config import RunConfig, TrainConfig
from warpzone.run.loop import train
from warpzone.run.presets import CPU

pytest.importorskip("gym_super_mario_bros")


class KillsAWorker:
    """A display that sends a signal to the first worker when the first update is recorded."""

    def __init__(self, diagnostics: Path, sent: signal.Signals) -> None:
        self.diagnostics, self.sent = diagnostics, sent
        self.said: list[str] = []
        self.records: list[dict[str, Any]] = []
        self.pid = 0

    def update(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if not self.pid:
            (marks,) = self.diagnostics.glob("worker_000_pid*.jsonl")
            self.pid = int(marks.stem.rpartition("pid")[2])
            os.kill(self.pid, self.sent)

    def say(self, line: str) -> None:
        self.said.append(line)


def short_run(tmp_path: Path) -> TrainConfig:
    return replace(
        CPU,
        run=RunConfig(
            run_name="short", runs_dir=str(tmp_path / "runs"), total_updates=3, log_interval=1, device="cpu",
            record_video=False,
        ),
        backend=BackendConfig(
            backend="nes-py", async_env=True, env_step_timeout=15.0, env_reset_timeout=120.0,
            env_diagnostics_dir=str(tmp_path / "diagnostics"),
        ),
        learn=replace(CPU.learn, minibatch_size=8, epochs=1),
        collect=CollectConfig(num_envs=2, rollout_steps=4),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "words"),
    [(signal.SIGKILL, "died (killed by signal 9)"), (signal.SIGSTOP, "is stuck: no answer")],
)
def test_training_survives_a_lost_worker(tmp_path: Path, sent: signal.Signals, words: str) -> None:
    display = KillsAWorker(tmp_path / "diagnostics", sent)
    outcome = train(short_run(tmp_path), display)
    assert outcome.progress.update == 3
    assert outcome.progress.global_step == 3 * 2 * 4
    assert outcome.exit_code == 0
    assert any(f"worker 0 (pid {display.pid}) {words}" in line for line in display.said)
    assert "[env] worker 0 was replaced; its episode counts as truncated" in display.said
    assert display.records[-1]["update"] == 3
