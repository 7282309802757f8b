"""`master.json`: everything that a master's run has done so far, replaced whole every couple of seconds."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from warpzone.errors import ConfigError
from warpzone.master.plan import MasterConfig, Plan, time_needed
from warpzone.master.verdict import short_of_target
from warpzone.watch.durable import remove_abandoned, write_durably
from warpzone.watch.metrics import METRICS_FILE, OUTCOME_FILE
from warpzone.watch.panel.runs import MASTER_FILE

FIXED = ("stages", "seed", "preset", "rom_sha256", "train_flags")
"""What can't change between two sittings."""
PhaseStatus = Literal["waiting", "running", "done", "skipped", "failed"]
Status = Literal["waiting", "running", "done", "ended", "failed"]
AGENT = "agent.safetensors"
OF_THE_AGENT = ("agent.*", "eval.*", "game.json")
"""Files that the end of a master's run leaves in its folder."""


@dataclass
class Phase:
    """One phase: the seconds planned for it and spent on it."""

    planned_s: float = 0.0
    spent_s: float = 0.0
    status: PhaseStatus = "waiting"
    note: str = ""


@dataclass
class Learner:
    """A run of this master: a specialist, the student or its polished successor."""

    stages: list[str]
    status: Status = "waiting"
    """waiting for a turn, running, done (target met), ended (by another limit of its own), failed."""
    spent_s: float = 0.0
    decisions: int = 0
    decisions_before: int = 0
    """Of these, in a run of this name that is gone."""
    turns: int = 0
    turn_left_s: float = 0.0
    """What is left of a turn that was interrupted."""
    clear_rate: dict[str, float] = field(default_factory=dict)
    error: str = ""


@dataclass
class State:
    """The file's contents."""

    settings: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=dict)
    status: Literal["running", "stopped", "done", "failed"] = "running"
    phases: dict[str, Phase] = field(default_factory=dict)
    specialists: dict[str, Learner] = field(default_factory=dict)
    policies: dict[str, Learner] = field(default_factory=dict)
    """The student and its polished successor."""
    parallel: int = 1
    rounds: list[float] = field(default_factory=list)
    """Seconds of a turn in each round of the specialists."""
    commands: list[dict[str, Any]] = field(default_factory=list)
    """Every process: when it began, in which phase, its words, seconds and exit code."""
    evaluations: dict[str, Any] = field(default_factory=dict)
    """Run -> mode -> stage -> result."""
    short: dict[str, str] = field(default_factory=dict)
    """Stages below the target, and why."""
    from_s: float = 0.0
    """Seconds of work after which it was done and got more minutes."""
    polished: int = 1
    """How often the student has been polished, this time included."""
    chosen: str = ""
    """The run whose policy is the agent."""
    sittings: int = 0
    updated_unix_s: float = 0.0

    @property
    def spent_s(self) -> float:
        return sum(phase.spent_s for phase in self.phases.values())

    @property
    def polished_run(self) -> str:
        """The run of this time's polishing."""
        return "polished" if self.polished == 1 else f"polished-{self.polished}"

    def save(self, folder: Path) -> None:
        self.updated_unix_s = time.time()
        write_durably(folder / MASTER_FILE, (json.dumps(asdict(self), indent=1) + "\n").encode())


def open_state(config: MasterConfig, plan: Plan, rom_sha256: str) -> State:
    """The state in the folder, made ready to resume, or a new one. A folder of another master is refused."""
    settings = {
        "stages": ",".join(plan.stages), "minutes": plan.seconds / 60, "target": config.target, "seed": config.seed,
        "preset": plan.preset, "rom_sha256": rom_sha256, "train_flags": " ".join(plan.train_flags),
        "episodes": config.episodes, "shares": plan.shares(),
    }  # fmt: skip
    state = read_state(config.out)
    if state is None:
        state = State(settings)
        state.phases = {name: Phase() for name in plan.shares()}
        state.specialists = {name: Learner(list(stages)) for name, stages in plan.groups.items()}
        state.parallel = plan.parallel
    differing = [
        f"{name} {state.settings.get(name)!r} there and {settings[name]!r} here"
        for name in FIXED
        if state.settings.get(name) != settings[name]
    ]
    if differing:
        raise ConfigError(
            f"{config.out} holds another master's run ({'; '.join(differing)}): choose another --out."
        )
    state.settings = settings
    if config.parallel:
        state.parallel = plan.parallel
    for learner in (*state.specialists.values(), *state.policies.values()):
        if learner.status == "failed":
            learner.turns, learner.turn_left_s, learner.error = 0, 0.0, ""
        if learner.status in ("running", "failed"):
            learner.status = "waiting"
    if state.status == "done" and plan.seconds - state.spent_s >= time_needed(plan)[1]:
        train_on(state, config.out)
    for name, phase in state.phases.items():
        phase.planned_s = plan.seconds * plan.shares()[name]
    if config.out.is_dir():
        remove_abandoned(config.out)
    return state


def train_on(state: State, folder: Path) -> None:
    """More minutes for a master that was done: the specialists of stages on which its agent is below the target train
    on, then the student, which is polished anew. The agent stays, and is the agent again if it is still the best. It is
    also what runs begin with of which nothing is left."""
    before = keep_agent(state, folder)
    state.evaluations = {before: state.evaluations[state.chosen]} if before else {}
    if before:
        state.short = short_of_target(state, before)
    state.status, state.from_s = "running", state.spent_s
    state.polished += 1
    for phase in state.phases.values():
        phase.status, phase.note = "waiting", ""
    learners = {run_name(name): one for name, one in state.specialists.items()} | state.policies
    for name, learner in learners.items():
        if not name.startswith("polished") and not state.short.keys().isdisjoint(learner.stages):
            learner.status, learner.turns, learner.turn_left_s = "waiting", len(state.rounds), 0.0
            (folder / name / OUTCOME_FILE).unlink(missing_ok=True)
        if not (folder / name / METRICS_FILE).exists():
            learner.decisions_before = learner.decisions


def keep_agent(state: State, folder: Path) -> str:
    """Copy the agent and its evaluations into a folder of their own, and return its name; empty if there is none."""
    kept = folder / f"agent-{state.polished}"
    files = [path for pattern in OF_THE_AGENT for path in folder.glob(pattern)]
    if state.chosen not in state.evaluations or not files:
        return ""
    kept.mkdir(exist_ok=True)
    for path in files:
        shutil.copyfile(path, kept / path.name)
    return kept.name


def run_name(specialist: str) -> str:
    return f"specialist-{specialist}"


def read_state(folder: Path) -> State | None:
    """The state in a folder; None if there is none."""
    try:
        saved = json.loads((folder / MASTER_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    try:
        return State(
            **{
                **saved,
                "settings": dict(saved["settings"]),
                "phases": _all(Phase, saved["phases"]),
                "specialists": _all(Learner, saved["specialists"]),
                "policies": _all(Learner, saved["policies"]),
            }
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(folder, error) from error


def _all(kind: Any, saved: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kind(**values) for name, values in saved.items()}


def _damaged(folder: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"{folder / MASTER_FILE} is not the state of a master's run ({error}): choose another --out."
    )
