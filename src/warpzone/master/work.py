"""A master at work: its clock, its state file and its children, which all phases share."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from warpzone.checkpoints.finding import best_checkpoint
from warpzone.checkpoints.saving import read_meta
from warpzone.errors import CheckpointError, ConfigError
from warpzone.master.children import Child, Crew, Spawn
from warpzone.master.plan import MasterConfig, Plan
from warpzone.master.state import AGENT, Learner, Phase, State, run_name
from warpzone.run.lock import refuse_if_trained
from warpzone.watch.jsonl import json_file
from warpzone.watch.metrics import METRICS_FILE, OUTCOME_FILE
from warpzone.watch.panel.runs import last_record

BEAT_S = 0.2
SAVE_EVERY_S = 2.0
LOCK_S = 90.0
"""How long a run's former process, whose parent was killed, may take to save and let go of the run."""
STOPPED = (-15, 130, 143)
"""Exit codes of a child that was told to stop."""


class Stopped(Exception):
    """A signal asks the master to stop."""


class Failed(Exception):
    """A phase can't be done; the same command tries again."""


class Work:
    """Everything that the phases do goes through here."""

    def __init__(
        self, config: MasterConfig, plan: Plan, state: State, should_stop: Callable[[], bool],
        show: Callable[[State], None], say: Callable[[str], None], spawn: Spawn | None = None,
    ) -> None:  # fmt: skip
        self.config, self.plan, self.state = config, plan, state
        self.folder = config.out
        self.say = say
        self.phase = ""
        self.crew = Crew(config.out / "logs", spawn)
        self._should_stop, self._show = should_stop, show
        self._last = self._saved = time.monotonic()
        self._entries: dict[str, dict[str, Any]] = {}

    # ---- time ----

    def enter(self, phase: str) -> Phase:
        """Begin or resume a phase: from now on time is spent on it."""
        self.phase, self._last = phase, time.monotonic()
        current = self.state.phases[phase]
        current.status = "running"
        self.say(f"[master] {phase}: {max(0.0, self.left_s()):.0f} s")
        self.save()
        return current

    def left_s(self) -> float:
        """Seconds until this phase is to end."""
        return self.plan.ends_at(self.phase, self.state.from_s) - self.state.spent_s

    def beat(self) -> None:
        """Sleep a moment, count the time, see how the runs are doing, and now and then save. Raises Stopped."""
        time.sleep(BEAT_S)
        now = time.monotonic()
        passed, self._last = now - self._last, now
        self.state.phases[self.phase].spent_s += passed
        for name in self.crew.children:
            learner = self.learners().get(name)
            if learner is not None:
                learner.spent_s += passed
                learner.turn_left_s = max(0.0, learner.turn_left_s - passed)
        if now - self._saved >= SAVE_EVERY_S:
            self.save()
        if self._should_stop():
            raise Stopped

    def save(self) -> None:
        """Write the state and show it."""
        self._saved = time.monotonic()
        for name, child in self.crew.children.items():
            self._entries[name]["seconds"] = round(child.age_s, 1)
            if name in self.learners():
                self.read_progress(name)
        self.state.save(self.folder)
        self._show(self.state)

    # ---- runs ----

    def first_policy(self) -> str:
        """The run that is polished: the student, or the only specialist."""
        groups = self.plan.groups
        return "student" if len(groups) > 1 else run_name(next(iter(groups)))

    def weights_to_polish(self) -> str:
        """What is polished: the run above, or the earlier agent if nothing is left of it."""
        run = self.first_policy()
        is_left = any((self.folder / run / "checkpoints").glob("*.pt"))
        return run if is_left else str(self.earlier_agent() or run)

    def earlier_agent(self) -> Path | None:
        """The agent that was made before this master got more minutes."""
        path = self.folder / AGENT
        return path if self.state.from_s and path.exists() else None

    def learners(self) -> dict[str, Learner]:
        """All runs by the name of their folder."""
        named = {run_name(name): learner for name, learner in self.state.specialists.items()}
        return {**named, **self.state.policies}

    def last_record(self, run: str) -> dict[str, Any]:
        """The last record of a run's metrics; empty if there is none."""
        return last_record(self.folder / run / METRICS_FILE, 16 << 10)

    def read_progress(self, run: str) -> None:
        record, learner = self.last_record(run), self.learners()[run]
        if steps := record.get("global_step"):
            learner.decisions = learner.decisions_before + steps
        learner.clear_rate = record.get("clear_rate") or learner.clear_rate

    def train(self, run: str, words: Sequence[str], seconds: float) -> Child:
        """Start or resume the training of a run."""
        folder = self.folder / run
        self._wait_for_lock(folder)
        (folder / OUTCOME_FILE).unlink(missing_ok=True)
        self.learners()[run].status = "running"
        child = self.crew.start(run, self.train_words(run, words), seconds, folder / METRICS_FILE)
        self._began(child)
        return child

    def train_words(self, run: str, words: Sequence[str]) -> list[str]:
        """The whole command of a training."""
        every = ["train", "--run-name", run, "--runs-dir", str(self.folder), "--seed", str(self.config.seed)]
        return [*every, *words, *self._rom(), *self.plan.train_flags]

    def _rom(self) -> list[str]:
        return ["--rom", self.config.rom] if self.config.rom else []

    def _wait_for_lock(self, folder: Path) -> None:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                return refuse_if_trained(folder)
            except ConfigError:
                if time.monotonic() > deadline:
                    raise
            self.beat()

    def settle(self, child: Child) -> None:
        """Take down how a training ended."""
        self.note(child)
        learner = self.learners()[child.name]
        self.read_progress(child.name)
        code = child.process.returncode
        if code in STOPPED:
            learner.status = "waiting"
        elif code:
            learner.status = "failed"
            learner.error = (child.last_words().splitlines() or ["no output"])[-1].strip()
            self.say(f"[master] {child.name} failed (exit code {code}): {learner.error}")
        else:
            learner.status = "ended"
        with suppress(CheckpointError):
            # What teaches and is evaluated is the best, not the last.
            best = read_meta(best_checkpoint(self.folder / child.name))
            learner.clear_rate = best.clear_rate or learner.clear_rate
        self.read_outcome(child.name)

    def read_outcome(self, run: str) -> None:
        """Whether the run's last session ended with the target met; also of one that ended just before a crash."""
        learner, outcome = self.learners()[run], json_file(self.folder / run / OUTCOME_FILE)
        confirmed = outcome.get("confirmed") or {}
        if all(s in confirmed and confirmed[s]["low"] >= self.config.target for s in learner.stages):
            learner.status = "done"
            learner.clear_rate = {s: confirmed[s]["clear_rate"] for s in learner.stages}
            learner.decisions = learner.decisions_before + outcome["global_step"]

    def _began(self, child: Child) -> None:
        """Remember a command from its start: it may be running when this process is killed."""
        self._entries[child.name] = {
            "phase": self.phase, "began_unix_s": round(child.began_unix_s, 1), "command": shlex.join(child.argv),
            "seconds": 0.0, "exit_code": None,
        }  # fmt: skip
        self.state.commands.append(self._entries[child.name])
        self.save()

    def note(self, child: Child) -> None:
        """Remember how a command has ended."""
        self._entries[child.name] |= {"seconds": round(child.age_s, 1), "exit_code": child.process.returncode}

    # ---- other commands ----

    def run_all(self, jobs: Mapping[str, Sequence[str]], at_once: int, *, limited: bool) -> dict[str, Child]:
        """Run commands, so many at a time, each until it ends or, if `limited`, until the phase is over."""
        waiting, over = dict(jobs), {}
        while waiting or len(self.crew):
            while waiting and len(self.crew) < at_once:
                name = next(iter(waiting))
                seconds = max(0.0, self.left_s()) if limited else math.inf
                self._began(self.crew.start(name, [*waiting.pop(name), *self._rom()], seconds))
            self.beat()
            for child in self.crew.ended():
                self.note(child)
                over[child.name] = child
        return over

    def stop(self) -> None:
        """End all children, which save first, and take down where everything stands."""
        for child in self.crew.stop_all():
            with suppress(KeyError):
                self.settle(child)
        self.state.status = "stopped"
        self.save()
