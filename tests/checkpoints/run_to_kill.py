"""A small stand-in for a training run, to be killed at any moment: `python -m tests.checkpoints.run_to_kill RUN SEED
FAULT`.

It resumes, counts updates, logs each and saves often. A saved state is sound if `weights` is what `update`
says.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import torch

from tests.checkpoints.faulty_files import Crash, FaultyFiles
from warpzone.checkpoints.finding import find_resume
from warpzone.checkpoints.keeping import CheckpointKeeper
from warpzone.checkpoints.policy import CheckpointPolicy
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError
from warpzone.watch.durable import Files
from warpzone.watch.metrics import MetricsWriter

LATEST_EVERY, STEP_EVERY, KEEP = 3, 10, 3


def next_save(update: int) -> int:
    """The first update after this one at which something is saved."""
    return min((update // every + 1) * every for every in (LATEST_EVERY, STEP_EVERY))


def weights_of(update: int) -> torch.Tensor:
    """Large enough that a kill often falls into the writing of it."""
    return torch.full((200_000,), float(update))


def fail_somewhere(fault: str, seed: int) -> Files:
    return Files() if fault == "none" else FaultyFiles(random.Random(seed).randrange(10, 2000), fault)


def main(run: Path, seed: int, fault: str) -> None:
    source = find_resume(run)
    update = 0
    if source is not None:
        state = load_checkpoint(source.path).state
        assert state["update"] == source.meta.global_update
        assert torch.equal(state["weights"], weights_of(state["update"]))
        update = state["update"]
    print(f"resumed {update}", flush=True)
    policy = CheckpointPolicy(LATEST_EVERY, 0, STEP_EVERY, KEEP)
    keeper = CheckpointKeeper(run / "checkpoints", policy, files=fail_somewhere(fault, seed))
    metrics = MetricsWriter(run, rotate_bytes=200_000)
    while True:
        update += 1
        state = {"update": update, "weights": weights_of(update), "envs": [b"machine" * 100, np.arange(9)]}
        meta = CheckpointMeta(
            global_update=update, global_step=update * 64, clear_rate={"1-1": update / (update + 9)}
        )
        metrics.write({"update": update, "global_step": update * 64})
        try:
            saved = keeper.save_due(lambda state=state: state, meta)  # type: ignore[misc]
        except CheckpointError as error:
            print(f"failed {update} {error}", flush=True)
            continue
        except Crash:
            os.kill(os.getpid(), signal.SIGKILL)
        if saved:
            print(f"saved {update}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
