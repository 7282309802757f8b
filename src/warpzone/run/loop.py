"""The training loop."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpzone.agents.agent import Agent
from warpzone.agents.evaluation import StageResult
from warpzone.run.config import TrainConfig
from warpzone.run.control import Control
from warpzone.run.hooks import (
    EPISODES_FOR_RATE,
    ConfirmTarget,
    Hook,
    LogMetrics,
    RecordVideos,
    SaveCheckpoints,
)
from warpzone.run.log import Display
from warpzone.run.progress import Progress
from warpzone.run.session import Session, make_plan, open_session
from warpzone.run.stopping import EXIT_FAILED, StopFlag
from warpzone.watch.durable import write_durably

OUTCOME_FILE = "outcome.json"


@dataclass
class Outcome:
    """What a training session led to."""

    folder: Path
    progress: Progress
    reason: str
    """Why the session ended, as a phrase."""
    exit_code: int
    confirmed: dict[str, StageResult] = field(default_factory=dict)
    """Clear rates on fresh episodes, where the run has a target."""
    agent: Agent | None = None
    updates: int = 0
    """Updates made in this session."""

    def as_dict(self) -> dict[str, Any]:
        """Everything but the agent, for programs that started the run."""
        return {
            "reason": self.reason,
            "exit_code": self.exit_code,
            "update": self.progress.update,
            "global_step": self.progress.global_step,
            "elapsed_s": self.progress.elapsed_s,
            "clear_rate": self.progress.clear_rate,
            "confirmed": {stage: result.as_dict() for stage, result in self.confirmed.items()},
        }


def train(config: TrainConfig, display: Display) -> Outcome:
    """Train until a limit, the target or a signal; leave the run so that it can be resumed."""
    plan = make_plan(config, display)
    with StopFlag(plan.display.say) as stop, open_session(plan, stop) as (session, control):
        log = LogMetrics(session)
        hooks: list[Hook] = [log, SaveCheckpoints(session), RecordVideos(session), ConfirmTarget(session)]
        with session.saved_however_it_ends():
            reason = learn(session, control, log, hooks)
    exit_code = EXIT_FAILED if session.has_diverged else stop.exit_code
    outcome = Outcome(
        session.run.path, session.progress, reason, exit_code, session.confirmed, session.agent(),
        session.learned_updates,
    )  # fmt: skip
    if outcome.updates:
        _write(outcome, plan.display)
    return outcome


def _write(outcome: Outcome, display: Display) -> None:
    document = json.dumps(outcome.as_dict(), indent=2) + "\n"
    try:
        write_durably(outcome.folder / OUTCOME_FILE, document.encode())
    except OSError as error:
        display.say(f"[train][warn] cannot write {OUTCOME_FILE} ({error.strerror or error})")


def learn(session: Session, control: Control, log: LogMetrics, hooks: Sequence[Hook]) -> str:
    """Collect a rollout, learn from it, do what is due; again until the session is over. Returns why it is."""
    run, progress = session.run, session.progress
    collector, learner = session.components.collector, session.components.learner
    while not (reason := session.finished()):
        progress.stopped_s -= control.obey(progress.update)
        if session.stop:
            continue

        run.heartbeat.beat("collect", update=progress.update)
        with run.slow_steps.step():
            rollout = collector.collect()
        run.heartbeat.beat("learn")
        learned = learner.update(rollout)

        progress.update += 1
        progress.global_step += rollout.num_decisions
        session.learned_updates += 1
        run.write_settings()
        if not math.isfinite(learned["loss_total"]):
            session.diverge("loss")
            continue
        progress.clear_rate = run.episodes.clear_rates(min_episodes=EPISODES_FOR_RATE)
        learner.success = sum(progress.clear_rate.get(s, 0.0) for s in session.stages) / len(session.stages)
        learner.observe_progress(run.episodes.mean_return())
        log.observe(collector.rollout_time, learned["learn_time"])
        if run.profiler is not None:
            run.profiler.step()
        for hook in hooks:
            if hook.due():
                run.heartbeat.beat(hook.phase)
                hook.run()
    return reason
