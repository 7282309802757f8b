"""`warpzone bench overlap`: collecting beside learning against taking turns, over sizes of the rollout."""

from __future__ import annotations

import csv
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from warpzone.cli.bench_results import table
from warpzone.cli.flags import parse
from warpzone.cli.settings import DryRun, writing
from warpzone.cli.train import settings
from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.log import Silent
from warpzone.run.loop import train
from warpzone.run.stopping import EXIT_OK
from warpzone.watch.metrics import read_metrics

Mode = Literal["sync", "overlap"]
MODES: tuple[Mode, ...] = ("sync", "overlap")


@dataclass(frozen=True)
class BenchOverlapConfig(DryRun):
    """Train with and without --overlap-collect for every number of environments and length of rollout, and compare
    what the metrics say. Flags after a lone -- go to `warpzone train`: warpzone bench overlap -- --encoder nature."""

    num_envs_list: str = "16,64"
    """Numbers of environments, comma-separated."""
    rollout_list: str = "32,64"
    """Rollout lengths in decisions, comma-separated."""
    updates: int = 30
    """Updates per training."""
    warmup_frac: float = 0.2
    """Share of the updates that is not counted, 0 to 1."""
    out_dir: Path = Path()
    """Folder for the table, bench_overlap_<timestamp>.csv."""

    def __post_init__(self) -> None:
        if not 0 <= self.warmup_frac < 1:
            raise ConfigError(f"--warmup-frac is a share from 0 to below 1, not {self.warmup_frac}.")
        if self.updates < 2:
            raise ConfigError("--updates must be at least 2.")
        numbers("--num-envs-list", self.num_envs_list)
        numbers("--rollout-list", self.rollout_list)


class Row(NamedTuple):
    """A training, by the columns of the CSV."""

    mode: Mode
    num_envs: int
    rollout: int
    steps_per_sec_mean: float
    updates_per_sec_mean: float
    replay_fill_final: float | None
    gpu_util_mean_window: float | None
    duration_sec: float


def numbers(flag: str, text: str) -> list[int]:
    """Whole positive numbers separated by commas."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) for part in parts):
        raise ConfigError(f"{flag} is a list of positive numbers such as 16,64, not {text!r}.")
    return [int(part) for part in parts]


def training(
    config: BenchOverlapConfig,
    mode: Mode,
    num_envs: int,
    rollout: int,
    runs_dir: Path,
    train_flags: Sequence[str] = (),
) -> TrainConfig:
    """One cell of the matrix as settings of a training."""
    flags = [
        *("--num-envs", str(num_envs), "--rollout-steps", str(rollout), "--minibatch-size", "0"),
        *("--algo", "appo", "--no-record-video", "--no-enable-tensorboard"),
        *("--until-clear-rate", "0", "--time-limit", "0"),
        *train_flags,
        *("--total-updates", str(config.updates), "--log-interval", "1", "--runs-dir", str(runs_dir)),
        *("--run-name", f"{mode}_{num_envs}_{rollout}"),
        "--overlap-collect" if mode == "overlap" else "--no-overlap-collect",
    ]
    return settings(flags, {})


def measure(config: TrainConfig, mode: Mode, warmup_frac: float) -> Row | None:
    """Train and read the metrics; None if the training was stopped."""
    began = time.perf_counter()
    outcome = train(config, Silent())
    duration_s = time.perf_counter() - began
    if outcome.exit_code != EXIT_OK:
        return None
    return row(config, mode, read_metrics(outcome.folder), warmup_frac, duration_s)


def row(
    config: TrainConfig, mode: Mode, records: list[dict[str, Any]], warmup_frac: float, duration_s: float
) -> Row:
    """What the records after the warm-up come to."""
    counted = records[int(warmup_frac * len(records)) :]
    took_s = sum(record["update_time"] for record in counted)
    return Row(
        mode=mode,
        num_envs=config.collect.num_envs,
        rollout=config.collect.rollout_steps,
        steps_per_sec_mean=config.decisions_per_update * len(counted) / took_s,
        updates_per_sec_mean=len(counted) / took_s,
        replay_fill_final=records[-1]["replay_fill_rate"],
        gpu_util_mean_window=records[-1]["gpu_util_mean_window"],
        duration_sec=duration_s,
    )


SETTINGS = {"": BenchOverlapConfig}


def run(argv: list[str]) -> int:
    at = argv.index("--") if "--" in argv else len(argv)
    config = parse(BenchOverlapConfig(), argv[:at], "warpzone bench overlap")
    sizes = [
        (n, steps)
        for n in numbers("--num-envs-list", config.num_envs_list)
        for steps in numbers("--rollout-list", config.rollout_list)
    ]
    with tempfile.TemporaryDirectory(prefix="warpzone_bench_") as folder:
        cells = [
            (mode, training(config, mode, *size, Path(folder), argv[at + 1 :]))
            for size in sizes
            for mode in MODES
        ]
        if config.dry_run:
            print(json.dumps([{"mode": mode, **asdict(cell.collect)} for mode, cell in cells], indent=2))
            return EXIT_OK
        console = Console()
        rows = _measure_all(cells, config.warmup_frac, console)
    console.print(shown(rows))
    path = config.out_dir / f"bench_overlap_{time.strftime('%Y%m%d_%H%M%S')}.csv"
    with writing(path, "--out-dir"), path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([Row._fields, *rows])
    console.print(f"[benchmark] wrote {path}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK


def _measure_all(cells: list[tuple[Mode, TrainConfig]], warmup_frac: float, console: Console) -> list[Row]:
    rows: list[Row] = []
    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("training", total=len(cells))
        for mode, cell in cells:
            collect = cell.collect
            bars.update(task, description=f"{mode} {collect.num_envs} x {collect.rollout_steps}")
            measured = measure(cell, mode, warmup_frac)
            if measured is None:
                console.print("[benchmark] stopped: the rest is left out", markup=False)
                break
            rows.append(measured)
            bars.advance(task)
    return rows


def shown(rows: list[Row]) -> Table:
    """Both modes of each size beside each other."""
    cells, ratios = [], []
    for sync, overlap in zip(rows[::2], rows[1::2], strict=False):
        ratios.append(overlap.steps_per_sec_mean / sync.steps_per_sec_mean)
        speeds = [f"{one.steps_per_sec_mean:,.0f}" for one in (sync, overlap)]
        cells.append((str(sync.num_envs), str(sync.rollout), *speeds, f"{ratios[-1]:.2f}"))
    if len(ratios) > 1:
        median = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})"
        cells.append(("median", "", "", "", median))
    columns = ("environments", "rollout", "sync steps/s", "overlap steps/s", "overlap / sync")
    return table("training, collecting beside learning against taking turns", columns, cells)
