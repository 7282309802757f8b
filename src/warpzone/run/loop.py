"""The training loop."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from warpzone.run.agent import Agent
from warpzone.run.build import Parts, build_parts, rom_digest
from warpzone.run.config import TrainConfig, resolve_device
from warpzone.run.curriculum import Curriculum
from warpzone.run.evaluate import StageResult, evaluate_stage
from warpzone.run.folder import RunFolder
from warpzone.run.meters import EnvironmentMeter
from warpzone.run.resume import ResumeSource, check_fits, find_resume
from warpzone.run.sidecar import CheckpointMeta
from warpzone.run.state import restore_run, run_state
from warpzone.run.stopping import StopFlag

CONFIRMATION_SLACK = 0.02
"""Fresh episodes may clear this much less often than asked: 128 of them scatter by about 2 %."""
EPISODES_FOR_RATE = 100
"""A stage's clear rate counts once so many episodes are in its window."""


class Display(Protocol):
    """Whoever shows the run to a person."""

    def update(self, record: dict[str, Any]) -> None: ...

    def say(self, line: str) -> None: ...


@dataclass
class Progress:
    """How far the run is, over all its sessions."""

    update: int = 0
    global_step: int = 0
    elapsed_s: float = 0.0
    evaluated_at: int = 0
    clear_rate: dict[str, float] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a training session came to."""

    folder: Path
    progress: Progress
    reason: str
    exit_code: int
    confirmed: dict[str, StageResult] = field(default_factory=dict)
    agent: Agent | None = None


def train(config: TrainConfig, display: Display) -> Outcome:
    """Train until a limit, success or a signal; then leave the run so that it can go on."""
    device = resolve_device(config)
    digest = rom_digest(config)
    stages = config.stage.names()
    progress = Progress()
    with StopFlag() as stop:
        run = RunFolder(config, stop)
        meter = EnvironmentMeter(config.collect.num_envs)
        curriculum = Curriculum(config.stage.curriculum, stages)
        began = time.monotonic()

        def elapsed() -> float:
            return progress.elapsed_s + time.monotonic() - began

        def on_episode(record: dict[str, Any]) -> None:
            curriculum.observe(record["stage"], record["cleared"], record["x_max"])
            record = {**record, "stage": stages[record["stage"]]}
            run.episodes.add(
                record, update=progress.update, global_step=progress.global_step, elapsed_s=elapsed()
            )

        parts = build_parts(
            config,
            device,
            on_episode,
            lambda columns, info: meter.observe(columns, info, parts.envs[0].rewards.scale()),
        )
        reason, confirmed = "", {}
        try:
            parts.collector.start()
            source = _resume(config, run, digest)
            if source is not None:
                display.say(str(source))
                restore_run(source, parts, run, progress, curriculum, display.say)
                if source.found_by == "search":
                    progress.update = progress.global_step = 0
                    progress.elapsed_s = 0.0
            clock = _Clock(progress)
            while not (reason := _finished(config, progress, elapsed(), stop)):
                run.heartbeat.beat("collect", update=progress.update)
                with run.slow_steps.step():
                    rollout = parts.collector.collect()
                run.heartbeat.beat("learn")
                learned = parts.learner.update(rollout)
                progress.update += 1
                progress.global_step += rollout.num_decisions
                clock.lap(parts.collector.rollout_time, learned["learn_time"])
                rates = run.episodes.clear_rates(min_episodes=EPISODES_FOR_RATE)
                progress.clear_rate = rates
                parts.learner.observe_progress(_progress_signal(run))
                if config.stage.curriculum == "progress":
                    weights = curriculum.weights().tolist()
                    for envs in parts.envs:
                        envs.set_stage_weights(weights)
                if run.profiler is not None:
                    run.profiler.step()
                if progress.update % config.run.log_interval == 0:
                    record = {
                        **learned, **meter.read(), **run.episodes.summary(), **run.resources.latest(), **clock.read(),
                        "update": progress.update, "global_step": progress.global_step,
                        "model_compiled": config.learn.compile and device.type == "cuda", "elapsed_s": elapsed(),
                    }  # fmt: skip
                    display.update(run.metrics.write(record))
                if run.checkpoints.due(progress.update):
                    run.heartbeat.beat("checkpoint")
                    run.checkpoints.save_due(
                        lambda: run_state(
                            parts, run, progress, curriculum, elapsed(), config.saves_consoles()
                        ),
                        _meta(config, progress, digest),
                    )
                if _worth_confirming(config, progress, rates, stages):
                    run.heartbeat.beat("evaluate")
                    confirmed = confirm(config, parts, stages, progress, display)
                    progress.evaluated_at = progress.update
                    target = config.run.until_clear_rate - CONFIRMATION_SLACK
                    if all(result.clear_rate >= target for result in confirmed.values()):
                        reason = "the clear rate was reached"
                        break
        finally:
            # Whatever happened, what was learned is saved and every thread and file is closed.
            try:
                _save_last(config, run, parts, progress, curriculum, elapsed(), digest, display)
            finally:
                progress.elapsed_s = elapsed()
                parts.close()
                run.close()
    agent = Agent(parts.learner.policy, config.view, device)
    return Outcome(run.path, progress, reason, stop.exit_code, confirmed, agent)


def confirm(
    config: TrainConfig, parts: Parts, stages: list[str], progress: Progress, display: Display
) -> dict[str, StageResult]:
    """Fresh sampled episodes of every stage with the weights of now."""
    agent = Agent(parts.learner.policy, config.view, parts.device)
    results: dict[str, StageResult] = {}
    for stage in stages:
        display.say(f"[train] evaluating {stage} on {config.run.eval_episodes} fresh episodes")
        results[stage] = evaluate_stage(
            agent, config.view, stage, episodes=config.run.eval_episodes, greedy=False,
            seed=config.run.seed + 1_000_003 + progress.update, threads=config.stage.env_threads,
            rom=config.stage.rom or None,
        )  # fmt: skip
        display.say(f"[train] {stage}: {results[stage].clear_rate:.1%} cleared")
        if results[stage].clear_rate < config.run.until_clear_rate - CONFIRMATION_SLACK:
            break
    return results


def _resume(config: TrainConfig, run: RunFolder, digest: str) -> ResumeSource | None:
    if config.run.fresh and not config.run.resume:
        return None
    source = find_resume(run.path, resume=config.run.resume or None, runs_folder=Path(config.run.runs_dir))
    if source is not None:
        check_fits(source, architecture=config.architecture(), rom_sha256=digest)
    return source


def _finished(config: TrainConfig, progress: Progress, elapsed_s: float, stop: StopFlag) -> str:
    """Why the run is over, or an empty string."""
    run = config.run
    if stop:
        return f"stopped by {stop.reason}"
    if run.total_updates and progress.update >= run.total_updates:
        return "all updates are done"
    if run.total_steps and progress.global_step >= run.total_steps:
        return "all steps are done"
    if run.time_limit and elapsed_s >= run.time_limit * 60:
        return "the time limit was reached"
    return ""


def _worth_confirming(
    config: TrainConfig, progress: Progress, rates: dict[str, float], stages: list[str]
) -> bool:
    """Whether training episodes clear often enough for an evaluation to be worth its time."""
    target = config.run.until_clear_rate
    if not target or any(rates.get(stage, 0.0) < target for stage in stages):
        return False
    # After a failed attempt, let a whole new window of episodes pass first.
    per_window = EPISODES_FOR_RATE * 250 // (config.collect.num_envs * config.collect.rollout_steps) + 1
    return progress.evaluated_at == 0 or progress.update - progress.evaluated_at >= per_window


def _progress_signal(run: RunFolder) -> float:
    """What the adaptive schedules follow: the mean return of recent episodes."""
    return float(run.episodes.summary()["avg_return"] or 0.0)


def _meta(config: TrainConfig, progress: Progress, digest: str) -> CheckpointMeta:
    return CheckpointMeta(
        global_step=progress.global_step,
        global_update=progress.update,
        config=config.as_dict(),
        clear_rate=progress.clear_rate,
        architecture=config.architecture(),
        rom_sha256=digest,
    )


def _save_last(
    config: TrainConfig,
    run: RunFolder,
    parts: Parts,
    progress: Progress,
    curriculum: Curriculum,
    elapsed_s: float,
    digest: str,
    display: Display,
) -> None:
    if progress.update == 0:
        return
    weights = torch.cat([p.detach().float().flatten().cpu() for p in parts.learner.policy.parameters()])
    if not torch.isfinite(weights).all():
        display.say("[train][warn] the weights are not finite: `latest` is left as it was")
        return
    run.heartbeat.beat("checkpoint")
    state = run_state(parts, run, progress, curriculum, elapsed_s, config.saves_consoles())
    run.checkpoints.save_latest(state, _meta(config, progress, digest))


class _Clock:
    """Rates and shares of the wall time since the last record."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._restart()

    def _restart(self) -> None:
        self._began = time.perf_counter()
        self._from_update, self._from_step = self._progress.update, self._progress.global_step
        self._collecting = self._learning = 0.0

    def lap(self, collecting_s: float, learning_s: float) -> None:
        self._collecting += collecting_s
        self._learning += learning_s

    def read(self) -> dict[str, float]:
        took = max(1e-9, time.perf_counter() - self._began)
        updates = max(1, self._progress.update - self._from_update)
        values = {
            "env_steps_per_sec": (self._progress.global_step - self._from_step) / took,
            "updates_per_sec": updates / took,
            "update_time": took / updates,
            "rollout_time": self._collecting / updates,
            "learn_time": self._learning / updates,
            "collect_share": self._collecting / took,
            "learn_share": self._learning / took,
        }
        self._restart()
        return values
