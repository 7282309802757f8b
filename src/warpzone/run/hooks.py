"""What a run does now and then between updates: log, save, record a video, test whether the target is reached."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from warpzone.agents.evaluation import StageResult, Trial, evaluate_stage
from warpzone.agents.intervals import clears_needed
from warpzone.agents.recording import RecordingStopped, Style, record_episode
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.errors import CheckpointError, ConfigError
from warpzone.learn.learner import OF_WEIGHTS
from warpzone.run.session import Session
from warpzone.watch.episodes import WINDOW_EPISODES

DECISIONS_PER_EPISODE = 250
"""About what clearing a stage takes."""
LEAST_TO_LOSE = 0.2
"""Below this mean clear rate, the best weights are not worth going back to."""
SLOWEST = 0.25
"""Going back never leaves less of the planned learning rate."""
MOST_WINDOWS = 8
"""The longest wait between evaluations, in windows of episodes."""


class Hook(Protocol):
    """Periodic work. `due` is asked after every update; `phase` is what the heartbeat shows meanwhile."""

    phase: str

    def due(self) -> bool: ...

    def run(self) -> None: ...


class LogMetrics:
    """Writes a record of the metrics every `log_interval` updates, and of those left over at the end."""

    phase = "log"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begin_interval()

    def observe(self, collecting_s: float, learning_s: float) -> None:
        """Take in the times of one update; the learner keeps its own numbers."""
        self._collecting_s += collecting_s
        self._learning_s += learning_s

    def due(self) -> bool:
        return self._session.progress.update % self._session.config.run.log_interval == 0

    def is_behind(self) -> bool:
        """Whether there were updates since the last record."""
        return self._session.progress.update > self._from_update

    def run(self) -> None:
        session, config, progress = self._session, self._session.config, self._session.progress
        run = session.run
        record = {
            **session.components.learner.interval.read(),
            **{name: value for envs in session.components.envs for name, value in envs.metrics().items()},
            **session.meter.read(), **run.episodes.summary(), **run.resources.latest(),
            **self._speeds(), "update": progress.update, "global_step": progress.global_step,
            "stage_share": session.curriculum.shares(), **session.reverse.metrics(), **session.arrivals.metrics(),
            "model_compiled": config.learn.compile and session.plan.device.type == "cuda",
            "elapsed_s": progress.elapsed_s,
        }  # fmt: skip
        self._begin_interval()
        session.plan.display.update(run.metrics.write(record))

    def _begin_interval(self) -> None:
        progress = self._session.progress
        self._began = time.perf_counter()
        self._from_update, self._from_step = progress.update, progress.global_step
        self._collecting_s = self._learning_s = 0.0

    def _speeds(self) -> dict[str, float]:
        """Rates and shares of the wall time since the last record."""
        progress, took_s = self._session.progress, max(1e-9, time.perf_counter() - self._began)
        updates = max(1, progress.update - self._from_update)
        return {
            "env_steps_per_sec": (progress.global_step - self._from_step) / took_s,
            "updates_per_sec": updates / took_s,
            "update_time": took_s / updates,
            "rollout_time": self._collecting_s / updates,
            "learn_time": self._learning_s / updates,
            "collect_share": self._collecting_s / took_s,
            "learn_share": self._learning_s / took_s,
        }


@dataclass
class SaveCheckpoints:
    """Saves `latest`, `best` and numbered checkpoints when their intervals are over."""

    session: Session
    phase = "checkpoint"

    def due(self) -> bool:
        return self.session.run.checkpoints.due(self.session.progress.update)

    def run(self) -> None:
        self.session.save_due()


@dataclass
class GoBack:
    """Goes back to the best weights when most of what they could do is lost, and learns on half as fast, but no slower
    than at a quarter: at an eighth, a run of 8-4 got no better.

    Once for each best: weights saved while they were being lost would else be loaded again and again.
    """

    session: Session
    phase = "go back"

    def due(self) -> bool:
        share, progress = self.session.config.run.go_back, self.session.progress
        if not share or len(progress.clear_rate) < len(self.session.stages):
            return False
        if self.session.run.checkpoints.best_update <= progress.went_back_at:
            return False
        now, best = self._rates()
        return best >= LEAST_TO_LOSE and now < share * best

    def run(self) -> None:
        session, (now, best) = self.session, self._rates()
        adaptation = session.components.learner.adaptation
        scale = max(adaptation.lr_scale / 2, min(adaptation.lr_scale, SLOWEST))
        rate = "half the" if scale < adaptation.lr_scale else "the same"
        try:
            self._load_best()
        except CheckpointError as error:
            session.say(f"[train][warn] can't go back to the best weights: {error}")
            return
        adaptation.lr_scale = scale
        session.progress.went_back_at = session.progress.update
        session.say(
            f"[train] clear rate {now:.0%} after {best:.0%}: back to the best weights, {rate} learning rate"
        )

    def _load_best(self) -> None:
        """The best weights and how they did along the trails. The windows of episodes begin anew: what comes next is
        not the best before it has shown that."""
        session, learner = self.session, self.session.components.learner
        best = load_checkpoint(session.run.checkpoints.folder / "best.pt").of_training()
        learner.close()
        learner.load_state_dict(
            {
                **learner.state_dict(),
                **{name: part for name, part in best["learner"].items() if name in OF_WEIGHTS},
            }
        )
        if "backward" in best:
            session.reverse.load_state_dict(best["backward"])
        session.run.episodes.forget_others([])

    def _rates(self) -> tuple[float, float]:
        """Mean clear rates over the stages, now and of the best weights."""
        now, best = self.session.progress.clear_rate, self.session.best_rates()
        return sum(now.values()) / len(self.session.stages), sum(best.values()) / len(self.session.stages)


@dataclass
class RecordVideos:
    """Records an episode of the first stage every `video_interval` updates."""

    session: Session
    phase = "video"

    def due(self) -> bool:
        every = self.session.config.run.video_interval
        return bool(every) and self.session.progress.update % every == 0

    def run(self) -> None:
        session, config, update = self.session, self.session.config, self.session.progress.update
        stage = session.stages[0]
        path = session.run.path / "videos" / f"update_{update:06d}_{stage}.mp4"
        try:
            video = record_episode(
                session.agent(), config.view, stage, path, Style(overlay=True), seed=config.run.seed + update,
                rom=config.stage.rom or None, should_stop=session.is_stopping,
            )  # fmt: skip
        except RecordingStopped:
            return
        except (OSError, ConfigError) as error:
            session.say(f"[train][warn] no video at {path}: {error}")
            return
        session.say(f"[train] video: {video.path} ({video.verdict})")


class ConfirmTarget:
    """Ends the run when fresh episodes show, with 95 % confidence, that every stage clears at the target rate.

    Training episodes only say when an evaluation is worth its time: they are what the policy was selected by.
    """

    phase = "evaluate"

    def __init__(self, session: Session) -> None:
        self._session = session
        run = session.config.run
        self._needed = clears_needed(run.until_clear_rate, run.eval_episodes) / run.eval_episodes
        if self._needed > 1:
            target = f"{run.until_clear_rate:.1%} with 95% confidence"
            session.say(f"[train][warn] {run.eval_episodes} fresh episodes can't show {target}")

    def due(self) -> bool:
        session, config, progress = self._session, self._session.config, self._session.progress
        rates = progress.clear_rate
        if not config.run.until_clear_rate or any(rates.get(s, 0.0) < self._needed for s in session.stages):
            return False
        # An evaluation takes as long as many updates: the wait for new episodes doubles with each that failed.
        decisions = WINDOW_EPISODES * DECISIONS_PER_EPISODE * len(session.stages)
        per_window = decisions // config.decisions_per_update + 1
        windows = min(2 ** max(0, progress.failed_evaluations - 1), MOST_WINDOWS)
        return progress.evaluated_at == 0 or progress.update - progress.evaluated_at >= windows * per_window

    def run(self) -> None:
        session = self._session
        session.confirmed = self._evaluate()
        if session.stop:
            session.say("[train] the evaluation is dropped: a resumed run makes it again")
            return
        session.progress.evaluated_at = session.progress.update
        results = session.confirmed
        of_all = len(results) == len(session.stages)
        reached = of_all and all(map(self._reached, results.values()))
        # An evaluation that fell short says which agent is better only if the best one was evaluated, too.
        is_best_evaluated = session.run.checkpoints.is_best_evaluated(session.meta())
        counts = reached or (of_all and is_best_evaluated)
        session.evaluated = {stage: result.clear_rate for stage, result in results.items()} if counts else {}
        if reached:
            session.ended = "the target clear rate was reached"
            return
        session.progress.failed_evaluations += 1
        if counts:
            try:
                session.save_latest()
            except CheckpointError as error:
                session.say(f"[train][warn] {error}; training continues")

    def _evaluate(self) -> dict[str, StageResult]:
        """Fresh episodes of every stage, up to the first that falls short; none if a stop is asked for."""
        session, config = self._session, self._session.config
        seed = config.run.seed + 1_000_003 + session.progress.update
        trial = Trial(
            config.run.eval_episodes, noop_max=config.view.noop_max, seed=seed,
            threads=config.stage.env_threads, random_start=config.view.random_start,
        )  # fmt: skip
        results: dict[str, StageResult] = {}
        for stage in session.stages:
            session.say(f"[train] evaluating {stage} on {config.run.eval_episodes} fresh episodes")
            result = evaluate_stage(
                session.agent(), stage, trial, rom=config.stage.rom or None,
                should_stop=session.is_stopping,
            )  # fmt: skip
            if result is None:
                return {}
            results[stage] = result
            session.say(f"[train] {stage}: {result}")
            if not self._reached(result):
                break
        return results

    def _reached(self, result: StageResult) -> bool:
        return result.interval[0] >= self._session.config.run.until_clear_rate
