"""A run's folder, and everything that writes into it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from warpzone.agents.agent import from_json
from warpzone.checkpoints.finding import ResumeSource
from warpzone.checkpoints.keeping import CheckpointKeeper
from warpzone.errors import ConfigError
from warpzone.run.config import ScriptConfig, TrainConfig
from warpzone.run.custom_parts import keep_code
from warpzone.run.lock import RunLock
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

CONFIG_FILE = "config.json"
STAGE_CHOICES = ("world", "stage", "stage_span", "stages")
_ONCE: Any = {
    "fresh": False,
    "resume": "",
    "dry_run": False,
    "trust_code": False,
    "accept_changed_code": False,
}
"""What is said for one session only."""


def run_folder(config: TrainConfig) -> Path:
    """The run's folder; with `fresh`, one beside those of the same name."""
    runs = Path(config.run.runs_dir)
    folder = runs / config.run.run_name
    number = 2
    while config.run.fresh and folder.exists():
        folder = runs / f"{config.run.run_name}-{number}"
        number += 1
    return folder


def saved_settings(folder: Path) -> TrainConfig | None:
    """The settings that a run was last trained with; None where there is no run to go on with."""
    try:
        saved = json.loads((folder / CONFIG_FILE).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(saved, dict) or not any((folder / "checkpoints").glob("*.pt")):
        return None
    try:
        rooms = {
            room.name: from_json(type(getattr(TrainConfig(), room.name)), saved.get(room.name, {}))
            for room in dataclasses.fields(TrainConfig)
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{folder / CONFIG_FILE} does not hold settings of a run ({error}): mend it or use --fresh."
        ) from error
    settings = TrainConfig(**rooms)
    return dataclasses.replace(
        settings,
        run=dataclasses.replace(settings.run, **_ONCE),
        watch=dataclasses.replace(settings.watch, profile=False),
        script=ScriptConfig(),
    ).resolved()


def settings_to_resume(folder: Path, given: Collection[str]) -> TrainConfig | None:
    """The settings of a run, wherever its folder has been moved to; of `given`, a way to choose stages replaces the one
    before, whichever of the four it was."""
    saved = saved_settings(folder)
    if saved is None:
        return None
    choice: dict[str, Any] = {}
    if any(name in given for name in ("world", "stage", "stage_span")):
        choice = {"stages": "", "random_stage": False}
    if "stages" in given:
        choice = {"random_stage": False}
    return dataclasses.replace(
        saved,
        run=dataclasses.replace(saved.run, run_name=folder.name, runs_dir=str(folder.parent)),
        stage=dataclasses.replace(saved.stage, **choice),
    )


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
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock(self.path)
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
            sinks.append(
                open_wandb(
                    watch.wandb_project,
                    run_name=self.path.name,
                    folder=self.path / "wandb",
                    config=config.as_dict(),
                )
            )
        self._sinks = sinks
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
        """Close everything; a failure in one does not keep the others open."""
        steps: list[Callable[[], None]] = [self.heartbeat.close, self.slow_steps.close, self.resources.close]
        if self.profiler is not None:
            steps.append(self.profiler.close)
        steps += [self.metrics.close, self.episodes.close, *(sink.close for sink in self._sinks)]
        steps.append(self._lock.close)
        failures: list[Exception] = []
        for step in steps:
            try:
                step()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
