"""One kill of a real `warpzone train`: start or resume it, SIGKILL it, and look at what is left."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tests.run.small_runs import SMALL, TIMINGS
from tests.warm import Process
from warpzone.checkpoints.finding import find_resume
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.errors import CheckpointError
from warpzone.run.log import LOG_FILE
from warpzone.watch.metrics import METRICS_FILE, read_metrics

KINDS = ("any moment", "while saving", "ENOSPC", "EIO", "short", "crash")
"""SIGKILL at any moment or once a save has begun, or at any moment of a run one of whose system calls fails."""
LATEST_EVERY, STEP_EVERY, KEEP = 3, 10, 3
FLAGS = (
    *SMALL,
    *("--deterministic", "--step-limit", "60", "--keep", str(KEEP), "--total-updates", "100000"),
    *("--latest-every-updates", str(LATEST_EVERY), "--step-every-updates", str(STEP_EVERY)),
)
CALLS_OF_A_SAVE = 376
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class TrainOutcome:
    """What a kill left behind; `problem` is empty where it left a sound run."""

    updates: int
    """The last update that the killed process recorded; 0 if it came to none."""
    lost: int
    """Updates the next process has to do over again."""
    was_saving: bool
    """Whether the kill came between the beginning of a save and its end."""
    has_failed_save: bool
    problem: str


def kill_training(runs: Path, name: str, seed: int, kind: str) -> TrainOutcome:
    """Kill the run `name` once. It may hold what earlier kills left: the process resumes from it."""
    chance = random.Random(seed)
    run = runs / name
    run_flags = [*FLAGS, "--runs-dir", str(runs), "--run-name", name]
    if kind in ("any moment", "while saving"):
        command = ["warpzone.cli.main", "train", *run_flags]
    else:
        fail_at = chance.randrange(6 * CALLS_OF_A_SAVE)
        command = ["tests.checkpoints.train_to_kill", kind, str(fail_at), *run_flags]
    expected = find_resume(run)
    before_metrics, before_log = _size(run / METRICS_FILE), _size(run / LOG_FILE)
    started = time.time()
    output = runs / f"{name}.out"
    output.unlink(missing_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = Process(*command, folder=ROOT, env=env, log=output)
    try:
        _wait_for_the_moment(process, run, kind, chance, before_metrics)
    finally:
        process.kill()
    log = (run / LOG_FILE).read_bytes()[before_log:].decode() if _size(run / LOG_FILE) else ""
    resumed = re.search(r"resuming from .*; update (\d+),", log)
    began = expected.meta.global_update if expected else 0
    if process.end().code >= 0:
        return TrainOutcome(0, 0, False, False, "ended by itself: " + output.read_text()[-300:])
    if resumed and int(resumed[1]) != began:
        return TrainOutcome(0, 0, False, False, f"resumed from {resumed[1]}, not from {began}")
    updates = _updates_of(run / METRICS_FILE, before_metrics)
    failed = log.count("could not save")
    found, problem = _look(run, began, updates, failed)
    last = max(updates, default=0)
    return TrainOutcome(last, max(0, last - found), _was_saving(run, started), failed > 0, problem)


def _wait_for_the_moment(
    process: Process, run: Path, kind: str, chance: random.Random, before_metrics: int
) -> None:
    def has_recorded() -> bool:
        return _size(run / METRICS_FILE) > before_metrics

    if kind == "any moment" and chance.random() < 0.25:
        # Also while it starts, reads the checkpoint or opens its files.
        time.sleep(chance.uniform(0.0, 5.0))
        return
    _wait(process, has_recorded)
    if kind == "crash":
        _wait(process, lambda: False)
        return
    time.sleep(chance.uniform(0.0, 1.5))
    if kind == "while saving":
        _wait(process, lambda: _is_writing(run))
        time.sleep(chance.uniform(0.0, 0.012))


def _wait(process: Process, has_come: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not has_come() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.0005)


def _look(run: Path, began: int, updates: list[int], failed: int) -> tuple[int, str]:
    """The update that the next process goes on from, and what is wrong with that."""
    if updates != list(range(began + 1, began + 1 + len(updates))):
        return began, f"the metrics have holes: {updates}"
    try:
        source = find_resume(run)
        checkpoint = load_checkpoint(source.path) if source else None
    except CheckpointError as error:
        return began, f"a file that can't be read was chosen: {error}"
    found = 0
    if checkpoint is not None:
        state: Any = checkpoint.state
        found = checkpoint.meta.global_update
        weights = [w for w in state["learner"]["policy"].values() if isinstance(w, torch.Tensor)]
        if state["progress"]["update"] != found or not all(torch.isfinite(w).all() for w in weights):
            return found, f"{checkpoint.path} is not what its sidecar says"
    last = max(updates, default=began)
    # Whatever was due before the last update is on the disk, unless the run said that it is not.
    due = [u for u in range(began + 1, last) if u % LATEST_EVERY == 0 or u % STEP_EVERY == 0]
    sure = [began, *due][: len(due) + 1 - min(failed, len(due))][-1]
    if not sure <= found <= last:
        return found, f"updates {began + 1} to {last} were done, {sure} must be saved and {found} is found"
    if last - found > LATEST_EVERY * (1 + failed):
        return found, f"{last - found} updates are lost"
    kept = [record["update"] for record in read_metrics(run)]
    if kept != list(range(1, len(kept) + 1)) or len(kept) < found:
        return found, f"the metrics have holes: {len(kept)} records up to {max(kept, default=0)}"
    return found, ""


def strayed(run: Path, reference: Path) -> list[int]:
    """Updates of which any record, done over again or not, differs from that of a run that was never killed."""
    right = {record["update"]: _lasting(record) for record in read_metrics(reference)}
    lines = (run / METRICS_FILE).read_bytes().splitlines()
    records = [json.loads(line) for line in lines if line.endswith(b"}")]
    return [record["update"] for record in records if _lasting(record) != right[record["update"]]]


def _lasting(record: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in record.items() if k not in TIMINGS}


def _updates_of(metrics: Path, offset: int) -> list[int]:
    """The updates recorded after `offset`; only the last line may be torn."""
    if not metrics.exists():
        return []
    lines = metrics.read_bytes()[offset:].split(b"\n")
    return [json.loads(line)["update"] for line in lines[:-1] if line]


def _is_writing(run: Path) -> bool:
    with suppress(FileNotFoundError):
        return any(entry.name.endswith(".tmp") for entry in os.scandir(run / "checkpoints"))
    return False


def _was_saving(run: Path, since_unix_s: float) -> bool:
    """Whether a temporary file, or a sidecar that still describes what it replaces, is newer than that."""
    files = [p for p in run.glob("checkpoints/*") if p.stat().st_mtime >= since_unix_s]
    return any(p.suffix == ".tmp" or (p.suffix == ".json" and b'"previous"' in p.read_bytes()) for p in files)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
