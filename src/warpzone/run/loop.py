"""The training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from warpzone.agents.agent import Agent, read_weights, resolve_checkpoint
from warpzone.agents.evaluation import StageResult, evaluate_stage
from warpzone.agents.recording import FilmStopped, record_episode
from warpzone.checkpoints.finding import ResumeSource, check_fits, find_resume
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.collect import Listeners
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import CheckpointError
from warpzone.run.build import Components, build_components, rom_digest
from warpzone.run.config import TrainConfig, resolve_device
from warpzone.run.control import Control, Steered
from warpzone.run.folder import RunFolder, run_folder
from warpzone.run.lock import refuse_if_trained
from warpzone.run.log import Display, LoggedDisplay
from warpzone.run.meters import EnvironmentMeter
from warpzone.run.script import play_scripts
from warpzone.run.state import begin_with, restore_learning, restore_play, run_state, saved_run
from warpzone.run.stopping import StopFlag
from warpzone.run.teachers import load_teachers
from warpzone.starts.curriculum import Curriculum
from warpzone.starts.reverse_curriculum import ReverseCurriculum
from warpzone.starts.trails import load_ways

CONFIRMATION_SLACK = 0.02
"""Fresh episodes may clear this much less often than asked: 256 of them scatter by about 1.5 %."""
EPISODES_FOR_RATE = 100
"""A stage's clear rate counts once so many episodes are in its window."""


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
    config.check()
    device = resolve_device(config)
    digest = rom_digest(config)
    stages = config.stage.names()
    folder = run_folder(config)
    refuse_if_trained(folder)
    display = LoggedDisplay(display, folder)
    # Whatever is refused is refused before anything is written.
    source = _resume(config, folder, digest)
    first_weights = _first_weights(config, digest) if source is None else None
    teachers = load_teachers(config, digest, device, display.say, folder)
    play_scripts(config, display.say)
    progress = Progress()
    meter = EnvironmentMeter(config.collect.num_envs)
    curriculum = Curriculum(config.stage.curriculum, stages)
    ways = load_ways(config.trail.trails, stages, config.view, digest, config.stage.rom or None)
    backward = ReverseCurriculum(ways, stages, config.trail, curriculum.weights, config.run.seed)
    began = time.monotonic()
    reason, confirmed, steps = "", {}, 0

    def elapsed() -> float:
        return progress.elapsed_s + time.monotonic() - began

    def on_episode(record: dict[str, Any]) -> None:
        if record["start"] != "snapshot":
            curriculum.observe(record["stage"], record["cleared"], record["x_max"], record["length"])
            if curriculum.adapts:
                parts.set_stage_weights(curriculum.weights())
        record = {**record, "stage": stages[record["stage"]]}
        run.episodes.add(
            record, update=progress.update, global_step=progress.global_step, elapsed_s=elapsed()
        )

    def on_step(columns: slice, info: Any) -> None:
        nonlocal steps
        meter.observe(columns, info, parts.envs[0].rewards.scale())
        backward.observe(columns, info)
        steps += 1
        in_rollout = config.collect.rollout_steps * len(parts.envs)
        run.heartbeat.advance(((steps - 1) % in_rollout + 1) / in_rollout)

    def state(with_consoles: bool) -> dict[str, Any]:
        return run_state(parts, run, progress, curriculum, backward, meter, elapsed(), with_consoles)

    def save_now() -> None:
        save_last(between_updates=True)

    def save_last(between_updates: bool) -> None:
        _save_last(config, run, parts, progress, digest, state, between_updates, display)

    with (
        StopFlag(display.say) as stop,
        closing(
            build_components(config, device, Listeners(on_episode, on_step), display.say, teachers)
        ) as parts,
        closing(RunFolder(config, folder, stop, source)) as run,
        closing(parts.collector),
    ):
        backward.attach([envs for envs in parts.envs if isinstance(envs, MarioVectorEnv)])
        saved = saved_run(source) if source is not None else None
        if source is not None and saved is not None:
            display.say(str(source))
            restore_learning(saved, source, parts, run, progress, curriculum, backward, meter, display.say)
        if first_weights is not None:
            begin_with(first_weights, config.run.begin_with, parts, display.say)
        parts.collector.start()
        if saved is not None:
            restore_play(saved, parts, backward, display.say)
        clock = _Clock(progress)
        steered = Steered(parts, curriculum, stop, run.heartbeat, save_now, display.say)
        with closing(Control(run.path, steered)) as control, _saved_however_it_ends(save_last, display):
            while not (reason := _finished(config, progress, elapsed(), stop)):
                began += control.obey(progress.update)
                if stop:
                    continue
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
                if run.profiler is not None:
                    run.profiler.step()
                if progress.update % config.run.log_interval == 0:
                    record = {
                        **learned, **meter.read(), **run.episodes.summary(), **run.resources.latest(), **clock.read(),
                        "update": progress.update, "global_step": progress.global_step,
                        "stage_share": curriculum.shares(), **backward.metrics(),
                        "model_compiled": config.learn.compile and device.type == "cuda", "elapsed_s": elapsed(),
                    }  # fmt: skip
                    display.update(run.metrics.write(record))
                if run.checkpoints.due(progress.update):
                    run.heartbeat.beat("checkpoint")
                    _save_due(config, run, progress, digest, state, display)
                if config.run.video_interval and progress.update % config.run.video_interval == 0:
                    run.heartbeat.beat("video")
                    _film(config, parts, run, stages[0], progress, display, stop)
                if _worth_confirming(config, progress, rates, stages):
                    run.heartbeat.beat("evaluate")
                    confirmed = confirm(config, parts, stages, progress, display, stop)
                    progress.evaluated_at = progress.update
                    target = config.run.until_clear_rate - CONFIRMATION_SLACK
                    if confirmed and all(result.clear_rate >= target for result in confirmed.values()):
                        reason = "the clear rate was reached"
                        break
        progress.elapsed_s, began = elapsed(), time.monotonic()
    agent = Agent(parts.learner.policy, config.view, device)
    return Outcome(run.path, progress, reason, stop.exit_code, confirmed, agent)


@contextmanager
def _saved_however_it_ends(save: Callable[[bool], None], display: Display) -> Iterator[None]:
    """Save `latest` when the block is left: everything after whole updates, what is sound after an error.

    A second Ctrl+C stops at once: what was saved last is what there is.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        try:
            save(False)
        except CheckpointError as unsaved:
            display.say(f"[train][warn] {unsaved}")
        raise
    save(True)


def confirm(
    config: TrainConfig,
    parts: Components,
    stages: list[str],
    progress: Progress,
    display: Display,
    stop: StopFlag,
) -> dict[str, StageResult]:
    """Fresh sampled episodes of every stage with the weights of now; none if a stop is asked for meanwhile."""
    agent = Agent(parts.learner.policy, config.view, parts.device)
    results: dict[str, StageResult] = {}
    for stage in stages:
        display.say(f"[train] evaluating {stage} on {config.run.eval_episodes} fresh episodes")
        result = evaluate_stage(
            agent, config.view, stage, episodes=config.run.eval_episodes, greedy=False,
            seed=config.run.seed + 1_000_003 + progress.update, threads=config.stage.env_threads,
            rom=config.stage.rom or None, should_stop=lambda: bool(stop),
        )  # fmt: skip
        if result is None:
            return {}
        results[stage] = result
        display.say(f"[train] {stage}: {result.clear_rate:.1%} cleared")
        if result.clear_rate < config.run.until_clear_rate - CONFIRMATION_SLACK:
            break
    return results


def _resume(config: TrainConfig, folder: Path, digest: str) -> ResumeSource | None:
    """Where to go on from; a checkpoint that does not fit is refused."""
    asked = config.run.resume
    if config.run.fresh and not asked:
        return None
    searches = asked in ("latest", "search")
    source = find_resume(
        folder,
        resume=None if asked == "search" else asked or None,
        runs_folder=Path(config.run.runs_dir),
        matching={"model": asdict(config.model), "view": asdict(config.view)} if searches else None,
    )
    if source is not None:
        check_fits(source, architecture=config.architecture(), rom_sha256=digest)
    return source


def _first_weights(config: TrainConfig, digest: str) -> dict[str, Tensor] | None:
    """Those of another agent, if the run is to begin with them; one of another network is refused."""
    if not config.run.begin_with:
        return None
    path = resolve_checkpoint(config.run.begin_with, Path(config.run.runs_dir))
    weights, meta = read_weights(path)
    source = ResumeSource(path, meta, "--begin-with")
    check_fits(source, architecture=config.architecture(), rom_sha256=digest)
    return weights


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


State = Callable[[bool], dict[str, Any]]
"""Gives all there is to save, with the consoles or without."""


def _save_due(
    config: TrainConfig, run: RunFolder, progress: Progress, digest: str, state: State, display: Display
) -> None:
    """Save what the intervals ask for. A disk that is full now may have room at the next turn."""
    try:
        run.checkpoints.save_due(lambda: state(config.saves_consoles()), _meta(config, progress, digest))
    except CheckpointError as error:
        display.say(f"[train][warn] {error}; training goes on")


def _save_last(
    config: TrainConfig,
    run: RunFolder,
    parts: Components,
    progress: Progress,
    digest: str,
    state: State,
    between_updates: bool,
    display: Display,
) -> None:
    if progress.update == 0:
        return
    weights = torch.cat([p.detach().float().flatten().cpu() for p in parts.learner.policy.parameters()])
    if not torch.isfinite(weights).all():
        display.say("[train][warn] the weights are not finite: `latest` is left as it was")
        return
    run.heartbeat.beat("checkpoint")
    # In the middle of an update the consoles are ahead of what is known of them: episodes then begin anew.
    consoles = between_updates and config.saves_consoles()
    run.checkpoints.save_latest(state(consoles), _meta(config, progress, digest))


def _film(
    config: TrainConfig,
    parts: Components,
    run: RunFolder,
    stage: str,
    progress: Progress,
    display: Display,
    stop: StopFlag,
) -> None:
    """An episode of the policy of now; none if a stop is asked for meanwhile."""
    agent = Agent(parts.learner.policy, config.view, parts.device)
    path = run.path / "videos" / f"update_{progress.update:06d}_{stage}.mp4"
    try:
        film = record_episode(
            agent, stage, path, seed=config.run.seed + progress.update, overlay=True, rom=config.stage.rom,
            should_stop=lambda: bool(stop),
        )  # fmt: skip
    except FilmStopped:
        return
    except OSError as error:
        display.say(f"[train][warn] no video: cannot write {path} ({error.strerror or error})")
        return
    verdict = "cleared" if film.cleared else f"reached x={film.x_max}"
    display.say(f"[train] video: {film.path} ({verdict})")


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
