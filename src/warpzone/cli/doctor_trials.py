"""Stability trials of the environments as subprocesses with time limits, and what they came to."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from warpzone.cli.doctor_trial import TrialSettings
from warpzone.cli.settings import DryRun
from warpzone.errors import ConfigError, require

REPORT = "env_stability_report.jsonl"


@dataclass(frozen=True)
class TrialsConfig(DryRun):
    """Make, reset, step and close environments repeatedly, each time within a time limit."""

    trials: int = 20
    """Number of trials."""
    num_envs: int = 8
    """Environments per trial."""
    timeout: float = 0.0
    """Timeout per trial, in seconds (0 = max(180, 60 per environment))."""
    prewarm_count: int = 0
    """nes-py: environments to make first in the parent (2 = every stage)."""
    backend: Literal["native", "nes-py"] = "nes-py"
    """Emulator of the environments."""
    start_method: Literal["auto", "fork", "forkserver", "spawn"] = "auto"
    """nes-py async: start method of workers."""
    trials_per_process: int = 1
    """Trials per subprocess; 1 includes all imports each time."""
    report: str = REPORT
    """File to append results to (JSON lines)."""
    reports_dir: str = "reports"
    """Folder for diagnostics of failed trials."""

    def __post_init__(self) -> None:
        require(self, "trials", "num_envs", "trials_per_process", at_least=1)
        require(self, "timeout", at_least=0)

    @property
    def limit_s(self) -> float:
        """Seconds for one trial."""
        return self.timeout or max(180.0, 60.0 * self.num_envs)


def run_trials(mode: str, config: TrialsConfig, console: Console) -> int:
    """Run them and append the results; the number of failures."""
    failures = 0
    for first in range(0, config.trials, config.trials_per_process):
        count = min(config.trials_per_process, config.trials - first)
        for offset, record in enumerate(_process_trials(mode, config, first, count)):
            with open(config.report, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            failures += not record["success"]
            verdict = "[green]ok[/]" if record["success"] else f"[red]{record['error']}[/]"
            console.print(
                f"trial {first + offset + 1}/{config.trials} {config.backend} {mode} "
                f"x{config.num_envs}: {record['total_s']:.2f} s {verdict}",
                highlight=False,
            )
    return failures


def _process_trials(mode: str, config: TrialsConfig, first: int, count: int) -> Iterator[dict[str, Any]]:
    """The records of `count` trials in one subprocess; after a failure the rest get a new one."""
    settings = TrialSettings(
        backend=config.backend, mode=mode, num_envs=config.num_envs, prewarm_count=config.prewarm_count,
        start_method=config.start_method,
    )  # fmt: skip
    done = 0
    while done < count:
        with tempfile.TemporaryDirectory(prefix="warpzone_trial_") as folder:
            rest = replace(settings, seed=first + done, repeats=count - done, diagnostics=folder)
            for record in _watch(rest, config):
                done += 1
                if not record["success"]:
                    record["diagnostics"] = _keep(Path(folder), record, config)
                yield record


def _watch(settings: TrialSettings, config: TrialsConfig) -> Iterator[dict[str, Any]]:
    """Read a subprocess's results, each within the limit; ends after the first failure."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "warpzone.cli.doctor_trial", json.dumps(asdict(settings))],
            stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            for repeat in range(settings.repeats):
                began = time.monotonic()
                limit = threading.Timer(config.limit_s, _kill, [process])
                limit.start()
                line = process.stdout.readline()
                took_s = time.monotonic() - began
                limit.cancel()
                record: dict[str, Any] = {
                    "timestamp": time.time() - took_s, "backend": settings.backend, "mode": settings.mode,
                    "num_envs": settings.num_envs, "seed": settings.seed + repeat, "timeout_s": config.limit_s,
                    "prewarm_count": settings.prewarm_count, "success": bool(line), "total_s": took_s,
                }  # fmt: skip
                if line:
                    yield record | json.loads(line)
                    continue
                log.seek(0)
                said = [text for text in log.read().splitlines() if text.strip()]
                failure = said[-1].strip() if said else f"exit status {process.wait()}"
                error = "timeout" if took_s >= config.limit_s else failure
                yield record | {"error": error, "log": said[-20:]}
                return
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End a trial and every worker it started: they are a session of their own."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    _kill(process)
    process.wait()


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _keep(folder: Path, record: dict[str, Any], config: TrialsConfig) -> str:
    """Copy a failed trial's diagnostics to where they last."""
    kept = Path(config.reports_dir) / f"{record['mode']}_diag_{int(record['timestamp'])}"
    kept = kept / f"seed_{record['seed']}_n{record['num_envs']}"
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    (kept / "trial.json").write_text(json.dumps(record, indent=2), encoding="utf-8")
    return str(kept)


def read_report(path: str) -> list[dict[str, Any]]:
    """The records of all trials so far."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        raise ConfigError(f"There is no report at {path}: run `warpzone doctor sync` first.") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"The report {path} is damaged: {error}.") from error


def summarise(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each backend, mode and number of environments."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["backend"], record["mode"], record["num_envs"]), []).append(record)
    rows = []
    for (backend, mode, num_envs), group in sorted(groups.items()):
        good = [record for record in group if record["success"]]
        row: dict[str, Any] = {
            "backend": backend, "mode": mode, "num_envs": num_envs, "trials": len(group), "success": len(good),
            "success_rate": len(good) / len(group),
        }  # fmt: skip
        for part in ("construct_s", "reset_s", "step_s", "close_s", "total_s"):
            values = [record[part] for record in good if part in record]
            for percent in (50, 90, 99):
                nearest = np.percentile(values, percent, method="inverted_cdf") if values else None
                row[f"{part}_p{percent}"] = nearest
        errors = [record["error"] for record in group if not record["success"]]
        row["errors"] = {error: errors.count(error) for error in sorted(set(errors))}
        rows.append(row)
    return rows


def print_report(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Totals, success rate and times (50/90/99 % of trials took at most so many seconds)."""
    table = Table(title="Stability trials; seconds as p50 / p90 / p99")
    for column in ("backend", "mode", "envs", "trials", "success", "construct", "reset", "step", "total"):
        table.add_column(column)
    for row in rows:
        counts = [str(row[name]) for name in ("backend", "mode", "num_envs", "trials")]
        times = [_times(row, part) for part in ("construct_s", "reset_s", "step_s", "total_s")]
        table.add_row(*counts, f"{row['success_rate']:.1%}", *times)
    console.print(table)
    for row in rows:
        for error, count in row["errors"].items():
            console.print(f"{row['backend']} {row['mode']}: {count} x {error}", markup=False, highlight=False)


def _times(row: dict[str, Any], part: str) -> str:
    values = [row[f"{part}_p{percent}"] for percent in (50, 90, 99)]
    return " / ".join("-" if value is None else f"{value:.3g}" for value in values)
