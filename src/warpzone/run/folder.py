"""A run's folder, and everything that writes into it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from warpzone.checkpoints.finding import ResumeSource
from warpzone.checkpoints.keeping import CheckpointKeeper
from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.custom_parts import keep_code
from warpzone.run.lock import RunLock
from warpzone.run.saved_settings import CONFIG_FILE
from warpzone.run.stopping import StopFlag, stop_on_stall
from warpzone.watch.durable import write_durably
from warpzone.watch.episodes import EpisodeLog
from warpzone.watch.heartbeat import Heartbeat
from warpzone.watch.metrics import MetricsWriter
from warpzone.watch.profile import UpdateProfiler
from warpzone.watch.resources import ResourceMonitor
from warpzone.watch.slow_steps import SlowStepTracer
from warpzone.watch.tensorboard import open_tensorboard
from warpzone.watch.weights_and_biases import open_wandb


def run_folder(config: TrainConfig) -> Path:
    """The run's folder; with `fresh`, one beside those of the same name."""
    runs = Path(config.run.runs_dir)
    folder = runs / config.run.run_name
    number = 2
    while config.run.fresh and folder.exists():
        folder = runs / f"{config.run.run_name}-{number}"
        number += 1
    return folder


class RunFolder:
    """Opens the run's files and closes them in the right order."""

    def __init__(
        self,
        config: TrainConfig,
        path: Path,
        stop: StopFlag,
        source: ResumeSource | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.path = path
        self._open = ExitStack()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._open.enter_context(closing(RunLock(self.path)))
        except OSError as error:
            raise self._unwritable(error) from error
        self._settings: TrainConfig | None = config
        if source is None or not (self.path / CONFIG_FILE).exists():
            self.write_settings_once()
        watch = config.watch
        sinks: list[Any] = []
        if watch.enable_tensorboard:
            step = source.meta.global_step if source else None
            board = open_tensorboard(self.path / "tensorboard", resume_step=step, say=say)
            if board is not None:
                sinks.append(board)
        if watch.wandb_project:
            name, folder = self.path.name, self.path / "wandb"
            sinks.append(open_wandb(watch.wandb_project, name, folder, config.as_dict()))
        self.metrics = MetricsWriter(self.path, sinks=sinks)
        self.episodes = EpisodeLog(self.path / "episodes.jsonl")
        self.heartbeat = Heartbeat(
            Path(watch.heartbeat_path) if watch.heartbeat_path else self.path / "heartbeat.jsonl",
            timeout_s=watch.heartbeat_timeout,
            diagnostics=self.path / "diagnostics",
            on_stall=stop_on_stall(stop) if watch.on_stall == "stop" else None,
        )
        self.slow_steps = SlowStepTracer(
            self.path / "diagnostics",
            threshold_s=watch.slow_step_trace_threshold,
            window_s=watch.slow_step_trace_window,
        )
        self.resources = ResourceMonitor(watch.monitor_interval)
        self.checkpoints = CheckpointKeeper(self.path / "checkpoints", config.checkpoint)
        self.profiler = UpdateProfiler(self.path / "profile") if watch.profile else None
        writers = [*sinks, self.metrics, self.episodes, self.profiler]
        for one in (*writers, self.resources, self.slow_steps, self.heartbeat):
            if one is not None:
                self._open.enter_context(closing(one))

    def write_settings_once(self) -> None:
        """Write config.json and the run's own code, once. A resumed run keeps what it has until it has learned with the
        new settings."""
        settings, self._settings = self._settings, None
        if settings is None:
            return
        try:
            keep_code(settings, self.path)
            write_durably(self.path / CONFIG_FILE, (json.dumps(settings.as_dict(), indent=2) + "\n").encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"The run folder {self.path} can't be written ({error.strerror or error}): "
            "choose another --runs-dir or make room."
        )

    def close(self) -> None:
        """Close everything, the heartbeat first and the lock last; a failure in one does not keep the others open."""
        self._open.close()
