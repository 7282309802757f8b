"""`master.json`: everything that a master's run has done so far, replaced whole every couple of seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from warpzone.errors import ConfigError
from warpzone.watch.durable import write_durably
from warpzone.watch.panel.runs import MASTER_FILE

PhaseStatus = Literal["waiting", "running", "done", "skipped", "failed"]
Status = Literal["waiting", "running", "done", "ended", "failed"]
AGENT = "agent.safetensors"


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
    """Seconds of a whole turn in each round of the specialists; those near the target have a part of it."""
    commands: list[dict[str, Any]] = field(default_factory=list)
    """Every process: when it began, in which phase, its words, seconds and exit code."""
    evaluations: dict[str, Any] = field(default_factory=dict)
    """Run -> mode -> stage -> result."""
    short: dict[str, str] = field(default_factory=dict)
    """Stages below the target, and why."""
    from_s: float = 0.0
    """Seconds of work after which it was done and got more minutes."""
    extended: bool = False
    """More minutes were given while it was under way: what is left of them in the end is trained on."""
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
