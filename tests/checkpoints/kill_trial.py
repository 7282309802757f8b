"""One kill: start the small run, let it work for a moment, SIGKILL it, and look at what is left."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

from tests.checkpoints.run_to_kill import next_save, weights_of
from tests.warm import Process
from warpzone.checkpoints.finding import find_resume
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.watch.metrics import read_metrics

FAULTS = ("none", "ENOSPC", "EIO", "short", "crash")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a kill left behind; `problem` is empty where it left a sound run."""

    resumed_from: int
    last_saved: int
    found: int
    problem: str


def kill_once(run: Path, seed: int, fault: str) -> Outcome:
    """`run` may hold what earlier kills left: the process resumes from it."""
    chance = random.Random(seed)
    log = run.with_suffix(".log")
    log.write_bytes(b"")
    arguments = (str(run), str(seed), fault)
    process = Process("tests.checkpoints.run_to_kill", *arguments, folder=ROOT, env=dict(os.environ), log=log)
    try:
        _wait_for(log, b"resumed", process)
        time.sleep(chance.uniform(0.0, 1.0))
    finally:
        process.kill()
    words = [line.split() for line in log.read_text(errors="replace").splitlines() if line]
    resumed_from = next((int(w[1]) for w in words if w[0] == "resumed"), -1)
    saved = [int(w[1]) for w in words if w[0] == "saved" and len(w) == 2]
    last_saved = max(saved, default=resumed_from)
    found, problem = _look(run, last_saved, log)
    return Outcome(resumed_from, last_saved, found, problem)


def _look(run: Path, last_saved: int, log: Path) -> tuple[int, str]:
    source = find_resume(run)
    if source is None:
        return 0, "" if last_saved == 0 else f"update {last_saved} was saved and nothing is found"
    state = load_checkpoint(source.path).state
    found = int(state["update"])
    if not (weights_of(found) == state["weights"]).all() or source.meta.global_update != found:
        return found, "the checkpoint is a mixture"
    # A save that failed may have failed with the file already in its place, and the one under way when the kill
    # came may have been completed without having been reported. Nothing else is sound.
    failed = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("failed ")]
    reported = max([last_saved, *failed])
    if found not in {last_saved, *(update for update in failed if update > last_saved), next_save(reported)}:
        return found, f"update {last_saved} was saved and {found} is found"
    updates = [record["update"] for record in read_metrics(run)]
    if updates != list(range(1, len(updates) + 1)) or len(updates) < found:
        return found, f"the metrics have holes: {len(updates)} records up to {max(updates, default=0)}"
    text = log.read_text(errors="replace")
    return found, "an unexpected error: " + text[-300:] if "Traceback" in text else ""


def _wait_for(log: Path, word: bytes, process: Process, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while word not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.005)
