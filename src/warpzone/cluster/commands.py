"""Commands of `warpzone` on the nodes of a cluster, started again elsewhere when their node is lost."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpzone.cluster.connection import Cluster
from warpzone.errors import ConfigError
from warpzone.master.children import GroupProcess, Process, Spawn
from warpzone.run.lock import refuse_if_trained

ANSWER_S = 30.0
"""How long a node may be silent before its command is started elsewhere."""
RELEASE_S = 90.0
RESTARTS = 3
FAILED = 70
"""Exit code of a command that no node could run."""


class Runner:
    """Runs one command on a node. Ends with it: nothing that it started outlives this process."""

    def __init__(self, argv: Sequence[str], log: str, folder: str, run: str) -> None:
        os.chdir(folder)
        _await_release(Path(run))
        # Python is where it is on this node.
        self._process = GroupProcess([sys.executable, *argv[1:]], Path(log))

    def poll(self) -> int | None:
        return self._process.poll()

    def send_signal(self, number: int) -> None:
        self._process.send_signal(signal.Signals(number))


class ClusterProcess:
    """A command on some node with `cpus` free CPUs. Trainings resume: a lost one continues from its checkpoint."""

    def __init__(self, cluster: Cluster, argv: Sequence[str], log: Path, cpus: int) -> None:
        self._cluster = cluster
        words = list(argv)
        run = Path(words[words.index("--runs-dir") + 1]) / words[words.index("--run-name") + 1]
        self._given = (words, str(log.resolve()), os.getcwd(), str(run.resolve()))
        self._cpus = cpus
        self.returncode: int | None = None
        self.restarts = self._told = 0
        self._runner: Any = None
        self._asked: Any = None
        self._asked_at = 0.0
        self._start()

    def poll(self) -> int | None:
        """The exit code; None while it runs, also where it is being started elsewhere."""
        ray = self._cluster.ray
        if self.returncode is not None:
            return self.returncode
        self._cluster.refuse_if_gone()
        if self._asked is None:
            self._asked, self._asked_at = self._runner.poll.remote(), time.monotonic()
        if ray.wait([self._asked], timeout=0)[0]:
            asked, self._asked = self._asked, None
            try:
                self.returncode = ray.get(asked, timeout=ANSWER_S)
                self._has_begun = True
            except ray.exceptions.RayError:
                self._start_again()
        elif self._has_begun and time.monotonic() - self._asked_at > ANSWER_S:
            self._start_again()
        if self.returncode is not None:
            self._cluster.kill(self._runner)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Whether or not it gets the signal, it is not started again."""
        self._told = int(number)
        if self._has_begun:
            self._runner.send_signal.remote(self._told)
        else:
            self._start_again()

    def _start_again(self) -> None:
        self._cluster.kill(self._runner)
        self._asked = None
        if self._told or self.restarts == RESTARTS:
            self.returncode = -self._told or FAILED
        else:
            self.restarts += 1
            self._start()

    def _start(self) -> None:
        # Before it has begun it may wait for free CPUs as long as it takes.
        self._has_begun = False
        options = {"num_cpus": self._cpus, "scheduling_strategy": "SPREAD", "max_restarts": 0}
        self._runner = self._cluster.ray.remote(Runner).options(**options).remote(*self._given)


def _await_release(run: Path) -> None:
    """Wait until the run's former process, whose parent was lost, has saved and let go of it."""
    deadline = time.monotonic() + RELEASE_S
    while time.monotonic() < deadline:
        try:
            return refuse_if_trained(run)
        except ConfigError:
            time.sleep(0.5)


def spawn_on(cluster: Cluster) -> Spawn:
    """Starts trainings of specialists on the cluster, and everything else here."""

    def spawn(argv: Sequence[str], log: Path) -> Process:
        if not log.name.startswith("specialist-"):
            return GroupProcess(argv, log)
        words = list(argv)
        cpus = int(words[words.index("--env-threads") + 1]) if "--env-threads" in words else 1
        return ClusterProcess(cluster, argv, log, cpus)

    return spawn
