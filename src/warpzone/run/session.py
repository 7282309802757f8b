"""A training session: everything a run consists of, opened, resumed and closed together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from warpzone.agents.agent import Agent, read_weights, resolve_checkpoint
from warpzone.agents.evaluation import StageResult
from warpzone.checkpoints.finding import ResumeSource, find_resume
from warpzone.checkpoints.fitting import check_fits
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.collect.env_group import Listeners
from warpzone.errors import CheckpointError
from warpzone.learn.distillation import Teachers
from warpzone.run.build import Components, Placement, build_components, rom_digest
from warpzone.run.config import TrainConfig
from warpzone.run.control import Control, Steered
from warpzone.run.custom_parts import check_unchanged, with_named_code
from warpzone.run.device import resolve_device
from warpzone.run.folder import RunFolder, run_folder
from warpzone.run.following import lead_off
from warpzone.run.lock import refuse_if_trained
from warpzone.run.log import Display, LoggedDisplay
from warpzone.run.meters import EnvironmentMeter
from warpzone.run.progress import Progress
from warpzone.run.script import play_scripts
from warpzone.run.state import EnvironmentStates, LearnerState, RewardStates, RunState, begin_with
from warpzone.run.stopping import StopFlag
from warpzone.run.teachers import load_teachers
from warpzone.starts.arrivals import Arrivals, load_arrivals
from warpzone.starts.curriculum import Curriculum
from warpzone.starts.imitation import TrailDemonstration
from warpzone.starts.reverse_curriculum import AUTO, ReverseCurriculum, TrailStarts
from warpzone.starts.trail_search import TrailSearch
from warpzone.starts.trails import load_ways


@dataclass
class Plan:
    """What a session will do. Whatever is refused is refused while the plan is made, before anything is written."""

    config: TrainConfig
    display: Display
    folder: Path
    device: torch.device
    rom_sha256: str
    source: ResumeSource | None
    first_weights: dict[str, Tensor] | None
    teachers: Teachers | None


def make_plan(config: TrainConfig, display: Display) -> Plan:
    """Check the settings, and find the checkpoint to resume from, the first weights and the teachers."""
    config.check()
    device, digest, folder = resolve_device(config, display.say), rom_digest(config), run_folder(config)
    config = with_named_code(config, folder)
    refuse_if_trained(folder)
    display = LoggedDisplay(display, folder)
    source = _resume_source(config, folder, digest, display.say)
    first_weights = _first_weights(config, digest) if source is None else None
    teachers = load_teachers(config, digest, device, display.say, folder)
    play_scripts(config, display.say)
    return Plan(config, display, folder, device, digest, source, first_weights, teachers)


@dataclass
class Session:
    """A run while it trains."""

    plan: Plan
    stop: StopFlag
    components: Components
    run: RunFolder
    curriculum: Curriculum
    reverse: ReverseCurriculum
    arrivals: Arrivals
    progress: Progress = field(default_factory=Progress)
    confirmed: dict[str, StageResult] = field(default_factory=dict)
    """The last evaluation on fresh episodes."""
    evaluated: dict[str, float] = field(default_factory=dict)
    """Clear rates of an evaluation that decides which checkpoint is the best: of the policy after `evaluated_at`."""
    ended: str = ""
    """Why the session is over, where a hook or the loop decided it."""
    has_diverged: bool = False
    learned_updates: int = 0
    """Updates made in this session."""

    def __post_init__(self) -> None:
        components = self.components
        self.meter = EnvironmentMeter(sum(envs.num_envs for envs in components.envs))
        name = str(self.plan.source.path) if self.plan.source else ""
        self.state = RunState(
            learned={
                "learner": LearnerState(components.learner, name, self.say),
                "rewards": RewardStates(components.envs),
                "episodes": self.run.episodes,
                "curriculum": self.curriculum,
                "backward": self.reverse,
                "meter": self.meter,
                "progress": self.progress,
            },
            playing={
                "envs": EnvironmentStates(components),
                "collector": components.collector,
                "trail_starts": TrailStarts(self.reverse),
                "arrivals": self.arrivals,
            },
        )
        self._steps = 0

    @property
    def config(self) -> TrainConfig:
        return self.plan.config

    @property
    def stages(self) -> list[str]:
        return self.curriculum.stages

    def say(self, line: str) -> None:
        self.plan.display.say(line)

    def agent(self) -> Agent:
        """The policy of now, to play with."""
        return Agent(self.components.learner.policy, self.config.view, self.plan.device, self.meta())

    def finished(self) -> str:
        """Why the session is over; an empty string while it is not."""
        run, progress = self.config.run, self.progress
        if self.ended:
            return self.ended
        if self.stop:
            return f"stopped by {self.stop.reason}"
        if run.total_updates and progress.update >= run.total_updates:
            return "all updates are done"
        if run.total_steps and progress.global_step >= run.total_steps:
            return "all steps are done"
        if run.time_limit and progress.elapsed_s >= run.time_limit * 60:
            return "the time limit was reached"
        return ""

    # ---- what the collector reports, on the thread that collects ----

    def on_episodes(self, records: Sequence[dict[str, Any]]) -> None:
        """Count finished episodes, and let the next ones follow the curriculum."""
        self.count_episodes(records)
        if self.curriculum.adapts and any(record["start"] != "snapshot" for record in records):
            self.components.set_stage_weights(self.curriculum.weights())

    def count_episodes(self, records: Sequence[dict[str, Any]]) -> None:
        """Count finished episodes, of this learner or another; on any thread."""
        progress, stages = self.progress, self.stages
        for one in records:
            if one["start"] != "snapshot":
                self.curriculum.observe(one["stage"], one["cleared"], one["x_max"], one["length"])
        second_half = sum(envs.num_envs for envs in self.components.envs) / 2
        noisy_from = second_half if self.config.collect.noisy_sticky > 0 else math.inf
        self.run.episodes.add(
            [{**one, "stage": stages[one["stage"]], "noisy": one["env"] >= noisy_from} for one in records],
            update=progress.update, global_step=progress.global_step, elapsed_s=progress.elapsed_s,
        )  # fmt: skip

    def on_step(self, columns: slice, info: Any) -> None:
        """Measure a step of the environments in `columns`."""
        self.meter.observe(columns, info, self.components.envs[0].rewards.scale())
        self.reverse.observe(columns, info)
        self.arrivals.observe(columns, info)
        in_rollout = self.config.collect.rollout_steps * len(self.components.envs)
        self.run.heartbeat.advance((self._steps % in_rollout + 1) / in_rollout)
        self._steps += 1

    # ---- resuming and saving ----

    def start(self) -> None:
        """Resume if there is something to resume from, and start collecting."""
        plan, components = self.plan, self.components
        for starts in (self.reverse, self.arrivals):
            starts.columns.attach([envs for envs in components.envs if envs.has_snapshots])
        saved = None
        if plan.source is not None:
            self.say(str(plan.source))
            saved = load_checkpoint(plan.source.path).of_training()
            self.state.restore_learned(saved)
            self.run.episodes.forget_others(self.stages)
            if self.curriculum.adapts:
                components.set_stage_weights(self.curriculum.weights())
        elif plan.first_weights is not None:
            begin_with(plan.first_weights, self.config.run.begin_with, components.learner, self.say)
        lead_off(components.learner)
        components.collector.start(Listeners(self.on_episodes, self.on_step))
        if saved is not None:
            self.state.restore_play(saved, self.say)

    def save_due(self) -> None:
        """Save what the checkpoint intervals ask for. A disk that is full now may have room at the next save."""
        if not self.has_finite_weights():
            self.diverge("weights")
            return
        try:
            self.run.checkpoints.save_due(lambda: self._saved(between_updates=True), self.meta())
        except CheckpointError as error:
            self.say(f"[train][warn] {error}; training continues")

    def save_latest(self, *, between_updates: bool = True) -> bool:
        """Save `latest`, unless nothing was learned in this session or the weights are not finite; whether it was."""
        if self.learned_updates == 0 or self.has_diverged:
            return False
        if not self.has_finite_weights():
            self.diverge("weights")
            return False
        self.run.heartbeat.beat("checkpoint")
        self.run.checkpoints.save_latest(self._saved(between_updates=between_updates), self.meta())
        return True

    def best_rates(self) -> dict[str, float]:
        """Clear rates of the best checkpoint, where they are comparable."""
        return self.run.checkpoints.best_rates(self.meta())

    def has_finite_weights(self) -> bool:
        weights = self.components.learner.policy.parameters()
        return all(bool(torch.isfinite(part).all()) for part in weights)

    def diverge(self, what: str) -> None:
        """End the session because `what` is not finite; the last checkpoint is left as it was."""
        self.has_diverged = True
        kept = find_resume(self.run.path)
        last = f"the last finite checkpoint is {kept.path} (update {kept.meta.global_update})" if kept else (
            "no checkpoint had been saved yet"
        )  # fmt: skip
        self.ended = (
            f"stopped: the {what} became non-finite after update {self.progress.update}; {last}; "
            "resume with a lower --learning-rate"
        )
        self.say(f"[train][warn] {self.ended}")

    def is_stopping(self) -> bool:
        """For work that takes long: a sign of life, and whether to break it off."""
        self.run.heartbeat.beat()
        return bool(self.stop)

    @contextmanager
    def saved_at_the_end(self) -> Iterator[None]:
        """Save `latest` when the block is left: everything after whole updates, what is sound after an error.

        A second Ctrl+C stops at once: the last checkpoint is what there is.
        """
        try:
            yield
            self.progress.stop_clock()
        except KeyboardInterrupt:
            raise
        except BaseException:
            try:
                self.save_latest(between_updates=False)
            except CheckpointError as unsaved:
                self.say(f"[train][warn] {unsaved}")
            raise
        self.save_latest()

    def _saved(self, *, between_updates: bool) -> dict[str, Any]:
        # In mid-update the environments are ahead of what is known of them: their episodes then start over.
        return self.state.state_dict(with_play=between_updates and self.config.saves_consoles())

    def meta(self) -> CheckpointMeta:
        """What a checkpoint saved now says about itself."""
        return CheckpointMeta(
            global_step=self.progress.global_step,
            global_update=self.progress.update,
            config=self.config.as_dict(),
            clear_rate=self.progress.clear_rate,
            fresh_clear_rate=self.evaluated if self.progress.evaluated_at == self.progress.update else {},
            architecture=self.config.architecture(),
            rom_sha256=self.plan.rom_sha256,
        )


@contextmanager
def open_session(
    plan: Plan, stop: StopFlag, placement: Placement | None = None
) -> Iterator[tuple[Session, Control]]:
    """Build the run's components, open its folder, resume, and close everything in the end."""
    config, say = plan.config, plan.display.say
    stages = config.stage.names()
    curriculum = Curriculum(config.stage.curriculum, stages)
    rom = config.stage.rom or None
    search = None
    # What is learned on levels is not to depend on one of them: no trails.
    trails = "" if config.stage.levels else config.trail.trails
    if trails == AUTO and config.backend.backend == "native":
        search = TrailSearch(
            plan.folder / "trails", stages, config.view, plan.rom_sha256, rom, say, lambda: session.is_stopping()
        )  # fmt: skip
        ways = search.known() if plan.source is not None else {}
    else:
        ways = load_ways(trails, stages, config.view, plan.rom_sha256, rom)
    reverse = ReverseCurriculum(ways, stages, config.trail, curriculum.weights, config.run.seed, search)
    demonstration = TrailDemonstration(reverse, config.view, config.trail.trail_imitation, config.run.seed)
    moments = load_arrivals(config.trail.arrivals, stages, config.view, plan.rom_sha256, rom)
    arrivals = Arrivals(moments, stages, config.trail.arrival_share, curriculum.weights, config.run.seed)
    with (
        closing(build_components(config, plan.device, say, plan.teachers, placement)) as components,
        closing(RunFolder(config, plan.folder, stop, plan.source, say)) as run,
        closing(components.collector),
    ):
        components.learner.demonstration = demonstration
        session = Session(plan, stop, components, run, curriculum, reverse, arrivals)
        session.start()
        steered = Steered(components, curriculum, stop, run.heartbeat, session.save_latest, say)
        with closing(Control(run.path, steered)) as control:
            session.progress.start_clock()
            yield session, control


def _resume_source(
    config: TrainConfig, folder: Path, digest: str, say: Callable[[str], None]
) -> ResumeSource | None:
    """The checkpoint to resume from; one that does not fit is refused."""
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
        check_unchanged(config, source, say)
    return source


def _first_weights(config: TrainConfig, digest: str) -> dict[str, Tensor] | None:
    """Those of another agent, if the run is to start from them; one of another network is refused."""
    if not config.run.begin_with:
        return None
    path = resolve_checkpoint(config.run.begin_with, Path(config.run.runs_dir))
    weights, meta = read_weights(path)
    source = ResumeSource(path, meta, "--begin-with")
    check_fits(source, architecture=config.architecture(), rom_sha256=digest)
    return weights
