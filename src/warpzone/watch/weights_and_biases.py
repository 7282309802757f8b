"""Weights & Biases, where it is installed and requested. `WANDB_MODE=offline` keeps everything on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpzone.errors import ConfigError
from warpzone.watch.jsonl import Record


class WandbLog:
    """A sink for `MetricsWriter`."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def __call__(self, record: Record) -> None:
        # W&B rejects a decreasing step, as after a resume, so the step is logged as a plain value.
        self._run.log({key: value for key, value in record.items() if value is not None})

    def close(self) -> None:
        self._run.finish()


def open_wandb(project: str, run_name: str, folder: Path, config: Mapping[str, Any]) -> WandbLog:
    """Start a W&B run with its files below `folder`."""
    try:
        import wandb
    except ImportError as error:
        raise ConfigError("--wandb-project needs wandb: pip install 'warpzone[wandb]'.") from error
    folder.mkdir(parents=True, exist_ok=True)
    run = wandb.init(project=project, name=run_name, dir=str(folder), config=dict(config), resume="allow")
    run.define_metric("*", step_metric="global_step")
    return WandbLog(run)
