"""`warpzone train` on a failing disk: `python -m tests.checkpoints.train_to_kill FAULT FAIL_AT FLAG...`.

The fault strikes one system call in the saving of checkpoints; `crash` makes it the last the process does.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial

from tests.checkpoints.faulty_files import Crash, FaultyFiles
from warpzone.checkpoints.keeping import CheckpointKeeper
from warpzone.cli.main import main
from warpzone.run import folder


class DyingFiles(FaultyFiles):
    """Files whose `crash` is a real one."""

    def _step(self) -> bool:
        try:
            return super()._step()
        except Crash:
            os.kill(os.getpid(), signal.SIGKILL)
            raise


if __name__ == "__main__":
    files = DyingFiles(int(sys.argv[2]), sys.argv[1])
    folder.CheckpointKeeper = partial(CheckpointKeeper, files=files)  # type: ignore[misc,assignment]
    sys.exit(main(["train", *sys.argv[3:]]))
