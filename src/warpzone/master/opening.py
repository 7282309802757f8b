"""The state that a master's run begins with: a new one, one to resume, or one that was done and got more minutes."""

from __future__ import annotations

import shutil
from pathlib import Path

from warpzone.errors import ConfigError
from warpzone.master.plan import MasterConfig, Plan, time_needed
from warpzone.master.state import Learner, Phase, State, read_state, run_name
from warpzone.master.verdict import short_of_target
from warpzone.watch.durable import remove_abandoned
from warpzone.watch.metrics import METRICS_FILE, OUTCOME_FILE

FIXED = ("stages", "seed", "preset", "rom_sha256", "train_flags")
"""What can't change between two sittings."""
OF_THE_AGENT = ("agent.*", "eval.*", "game.json")
"""Files that the end of a master's run leaves in its folder."""


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
    if state.status != "done" and settings["minutes"] > state.settings["minutes"]:
        state.extended = True
    state.settings = settings
    if config.parallel:
        state.parallel = plan.parallel
    for learner in (*state.specialists.values(), *state.policies.values()):
        if learner.status == "failed":
            learner.turns, learner.turn_left_s, learner.error = 0, 0.0, ""
        if learner.status in ("running", "failed"):
            learner.status = "waiting"
    if state.status == "done" and has_time_left(state, plan):
        train_on(state, config.out)
    for name, phase in state.phases.items():
        phase.planned_s = plan.seconds * plan.shares()[name]
    if config.out.is_dir():
        remove_abandoned(config.out)
    return state


def has_time_left(state: State, plan: Plan) -> bool:
    """Whether there is enough for all phases once more."""
    return plan.seconds - state.spent_s >= time_needed(plan)[1]


def train_on(state: State, folder: Path) -> None:
    """More minutes for a master that was done: the specialists of stages on which its agent is below the target train
    on, then the student, which is polished anew. The agent stays, and is the agent again if it is still the best. It is
    also what runs begin with of which nothing is left."""
    before = keep_agent(state, folder)
    state.evaluations = {before: state.evaluations[state.chosen]} if before else {}
    if before:
        state.short = short_of_target(state, before)
    state.status, state.from_s, state.extended = "running", state.spent_s, False
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
