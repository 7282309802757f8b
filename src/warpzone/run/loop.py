"""Trains a run: opens its session, repeats collecting, learning and what is due, and reports the outcome."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpzone.agents.agent import Agent
from warpzone.agents.evaluation import StageResult
from warpzone.run.build import Placement
from warpzone.run.config import TrainConfig
from warpzone.run.control import Control
from warpzone.run.following import dismiss, lead
from warpzone.run.hooks import ConfirmTarget, GoBack, Hook, LogMetrics, RecordVideos, SaveCheckpoints
from warpzone.run.log import Display
from warpzone.run.progress import Progress
from warpzone.run.session import Session, make_plan, open_session
from warpzone.run.stopping import EXIT_FAILED, StopFlag
from warpzone.watch.durable import write_durably
from warpzone.watch.episodes import WINDOW_EPISODES
from warpzone.watch.jsonl import json_file
from warpzone.watch.metrics import OUTCOME_FILE


@dataclass
class Outcome:
    """What a training session led to."""

    folder: Path
    progress: Progress
    reason: str
    """Why the session ended, as a phrase."""
    exit_code: int
    confirmed: dict[str, StageResult] = field(default_factory=dict)
    """The last evaluation on fresh episodes, up to the first stage that fell short; empty without one."""
    agent: Agent | None = None
    updates: int = 0
    """Updates made in this session."""

    def as_dict(self) -> dict[str, Any]:
        """What a program that started the run needs to know."""
        return {
            "reason": self.reason,
            "exit_code": self.exit_code,
            "update": self.progress.update,
            "global_step": self.progress.global_step,
            "elapsed_s": self.progress.elapsed_s,
            "clear_rate": self.progress.clear_rate,
            "confirmed": {stage: result.as_dict() for stage, result in self.confirmed.items()},
        }


def train(config: TrainConfig, display: Display, placement: Placement | None = None) -> Outcome:
    """Train until a limit, the target or a signal; leave the run so that it can be resumed.

    `placement` puts the environments on other machines, or other learners beside this one; by default all is here.
    """
    plan = make_plan(config, display)
    with StopFlag(plan.display.say) as stop, open_session(plan, stop, placement) as (session, control):
        log = LogMetrics(session)
        # Logging comes before saving, so that a checkpoint holds what the next record starts from; saving before what
        # takes long and can fail.
        hooks: list[Hook] = [
            log, SaveCheckpoints(session), GoBack(session), RecordVideos(session), ConfirmTarget(session),
        ]  # fmt: skip
        with session.saved_at_the_end():
            reason = run_updates(session, control, log, hooks)
        # After saving: a resumed run continues the interval as if nobody had looked.
        if log.is_behind() and not session.has_diverged:
            log.run()
        outcome = Outcome(
            folder=session.run.path,
            progress=session.progress,
            # The last save may have found weights that are not finite: then that is the reason.
            reason=session.ended or reason,
            exit_code=EXIT_FAILED if session.has_diverged else stop.exit_code,
            confirmed=session.confirmed,
            agent=session.agent(),
            updates=session.learned_updates,
        )
        if outcome.updates:
            _write_outcome(outcome, plan.display)
    return outcome


def _write_outcome(outcome: Outcome, display: Display) -> None:
    """Leave the outcome in the run's folder, with the last evaluation that any session made. A session that learned
    nothing leaves that of the one before."""
    path = outcome.folder / OUTCOME_FILE
    evaluation = json_file(path).get("last_evaluation")
    if outcome.confirmed:
        evaluation = {"update": outcome.progress.evaluated_at, "stages": outcome.as_dict()["confirmed"]}
    document = json.dumps({**outcome.as_dict(), "last_evaluation": evaluation}, indent=2) + "\n"
    try:
        write_durably(path, document.encode())
    except OSError as error:
        display.say(f"[train][warn] cannot write {OUTCOME_FILE} ({error.strerror or error})")


def run_updates(session: Session, control: Control, log: LogMetrics, hooks: Sequence[Hook]) -> str:
    """Repeat until the session is over: collect a rollout, learn from it, run the hooks that are due. Returns why it
    ended.

    `log` is one of the hooks, which is also told the times of every update. Where several learners share the work, this
    is the first: `lead`, `ranks.collect` and `dismiss` speak to the others, and do nothing where there are none.
    """
    run, progress = session.run, session.progress
    collector, learner = session.components.collector, session.components.learner
    while not (reason := session.finished()):
        # Requests from outside are obeyed between updates only. Time spent paused is not training time.
        progress.exclude(control.obey(progress.update))
        if session.stop:
            # Asked for just now, perhaps during a pause: `finished` gives the reason.
            continue

        lead(learner, session.components.envs, session.curriculum.weights())
        run.heartbeat.beat("collect", update=progress.update)
        with run.slow_steps.step():
            rollout = collector.collect()
        run.heartbeat.beat("learn")
        numbers = learner.update(rollout)

        # Episodes of this learner were counted while they were collected.
        session.count_episodes(learner.ranks.collect([]))
        progress.update += 1
        progress.global_step += rollout.num_decisions * learner.ranks.size
        session.learned_updates += 1
        if not math.isfinite(numbers["loss_total"]):
            session.diverge("loss")
            continue
        # Now the run has learned with these settings: they replace those that it was resumed from.
        run.write_settings_once()
        # Of the stages whose window of recent episodes is full.
        progress.clear_rate = run.episodes.clear_rates(min_episodes=WINDOW_EPISODES)
        # What the schedules go by that follow success, and those that follow progress.
        learner.success = sum(progress.clear_rate.get(s, 0.0) for s in session.stages) / len(session.stages)
        learner.best_success = max(learner.best_success, session.reverse.clear_rate())
        learner.adaptation.observe(run.episodes.mean_return())
        log.observe(collector.rollout_time, numbers["learn_time"])
        if run.profiler is not None:
            run.profiler.step()
        for hook in hooks:
            if not session.ended and hook.due():
                run.heartbeat.beat(hook.phase)
                hook.run()
    # After an error nobody dismisses the other learners: they end when they miss this process.
    dismiss(learner)
    return reason
