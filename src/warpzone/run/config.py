"""Everything a training run can be told."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from warpzone import custom_code
from warpzone.checkpoints.policy import CheckpointPolicy
from warpzone.collect.config import CollectConfig
from warpzone.envs.actions import action_names
from warpzone.envs.config import StageConfig, ViewConfig
from warpzone.envs.level_pool import parse_count
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.rewards import RewardConfig
from warpzone.envs.scripts import MAX_FRAMES, parse_sequence
from warpzone.errors import ConfigError, require
from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.schedules import AdaptiveConfig
from warpzone.model.config import ModelConfig
from warpzone.run.scale import ScaleConfig
from warpzone.starts.reverse_curriculum import AUTO, TrailConfig

Preset = Literal["auto", "cpu", "gpu"]
LARGEST_SAVED_CONSOLES = 256 << 20
"""Bytes. Consoles go into checkpoints up to this size."""
BYTES_PER_CONSOLE = 16 << 10


@dataclass(frozen=True)
class RunConfig:
    """The run itself: where it is kept and when it ends."""

    run_name: str = "mario"
    """Name of the run and its folder; a run that exists is resumed."""
    runs_dir: str = "runs"
    """Folder of all runs."""
    fresh: bool = False
    """Keep a run of that name and start a new one, named NAME-2."""
    resume: str = ""
    """Checkpoint to resume: latest, search, a file or a run's name."""
    begin_with: str = ""
    """Initial weights: an agent's file, a checkpoint or a run's name."""
    teachers: str = ""
    """Folder of runs or agent files to distil from (kickstarting)."""
    teacher_rate: float = 0.5
    """Minimum clear rate of a teacher on a stage, 0 to 1."""
    preset: Preset = "auto"
    """Defaults for a machine: cpu, gpu, or auto (gpu if CUDA is available)."""
    device: str = "auto"
    """Device: auto, cpu, cuda or cuda:N."""
    learner: Literal["auto", "torch", "native"] = "auto"
    """Learner: torch, or native kernels for small networks on a CPU."""
    seed: int = 0
    """Random seed."""
    deterministic: bool = False
    """Make runs with the same seed bit-identical, on a CPU."""
    total_updates: int = 0
    """Maximum updates of the whole run (0 = unlimited)."""
    total_steps: int = 0
    """Maximum decisions of the whole run, all environments together (0 = unlimited)."""
    time_limit: float = 0.0
    """Training time of the whole run, in minutes, earlier sessions included (0 = unlimited)."""
    until_clear_rate: float = 0.0
    """Stop when fresh episodes show this clear rate with 95 % confidence (0 = never)."""
    eval_episodes: int = 256
    """Fresh episodes per stage to confirm the clear rate."""
    go_back: float = 0.0
    """Return to the best weights below this share of their clear rate (0 = never)."""
    log_interval: int = 5
    """Updates between metrics records."""
    torch_threads: int = 0
    """CPU threads of torch (0 = all cores; one with a GPU)."""
    checkpoint_envs: bool = True
    """Save environment states too, to resume in mid-episode; not with --overlap-collect."""
    record_video: bool = True
    """Record a video of the final policy: the best of eight episodes."""
    video_interval: int = 0
    """Record a video every N updates (0 = only at the end)."""
    trust_code: bool = False
    """Run the custom code kept in the run's folder; read it first."""
    accept_changed_code: bool = False
    """Resume although the custom code has changed."""
    dry_run: bool = False
    """Print the resolved configuration and exit."""

    def __post_init__(self) -> None:
        require(
            self, "total_updates", "total_steps", "time_limit", "torch_threads", "video_interval", "seed", at_least=0
        )  # fmt: skip
        require(self, "log_interval", "eval_episodes", at_least=1)
        require(self, "until_clear_rate", "teacher_rate", "go_back", at_least=0, at_most=1)
        if not self.run_name or "/" in self.run_name or self.run_name.startswith("."):
            raise ConfigError(f"{self.run_name!r} is no name for a run: use a plain folder name.")


@dataclass(frozen=True)
class ScriptConfig:
    """Scripted play before training, to check that buttons, progress and rewards work together."""

    scripted_sequence: str = ""
    """Buttons and frames to play before training, such as 'START:8,RIGHT+B:180'."""
    scripted_forward_frames: int = 0
    """Frames to walk forward after the scripted sequence."""
    probe_forward_actions: bool = False
    """Try every action and report which goes furthest."""
    forward_action_id: int | None = None
    """Index of the action that walks forward; by default probed or running right."""

    def __post_init__(self) -> None:
        if not 0 <= self.scripted_forward_frames <= MAX_FRAMES:
            raise ConfigError(f"--scripted-forward-frames must be a number from 0 to {MAX_FRAMES}.")
        if self.scripted_sequence:
            parse_sequence(self.scripted_sequence)

    @property
    def is_wanted(self) -> bool:
        return bool(self.scripted_sequence or self.scripted_forward_frames or self.probe_forward_actions)


@dataclass(frozen=True)
class WatchConfig:
    """Logging and monitoring."""

    enable_tensorboard: bool = True
    """Write TensorBoard events to the run's folder."""
    wandb_project: str = ""
    """Weights & Biases project to log to."""
    heartbeat_path: str = ""
    """Heartbeat file; by default heartbeat.jsonl in the run's folder."""
    heartbeat_timeout: float = 300.0
    """Dump all stacks after N seconds without a heartbeat (0 = never)."""
    on_stall: Literal["warn", "stop"] = "warn"
    """Reaction to a missing heartbeat: warn, or stop with a checkpoint."""
    slow_step_trace_threshold: float = 0.0
    """Dump all stacks when three rollouts take longer than N seconds (0 = never)."""
    slow_step_trace_window: float = 60.0
    """Window for counting slow rollouts, in seconds."""
    monitor_interval: float = 5.0
    """Seconds between samples of CPU, memory and GPU."""
    profile: bool = False
    """Profile a few updates with torch's profiler."""
    plain: bool = False
    """Print lines instead of the live display."""

    def __post_init__(self) -> None:
        require(self, "heartbeat_timeout", "slow_step_trace_threshold", at_least=0)
        require(self, "slow_step_trace_window", "monitor_interval", above=0)


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training run."""

    run: RunConfig = field(default_factory=RunConfig)
    stage: StageConfig = field(default_factory=StageConfig)
    backend: BackendConfig = field(default_factory=BackendConfig)
    view: ViewConfig = field(default_factory=ViewConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    script: ScriptConfig = field(default_factory=ScriptConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    learn: LearnConfig = field(default_factory=LearnConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    adaptive: AdaptiveConfig = field(default_factory=AdaptiveConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)
    scale: ScaleConfig = field(default_factory=ScaleConfig)
    trail: TrailConfig = field(default_factory=TrailConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    checkpoint: CheckpointPolicy = field(default_factory=CheckpointPolicy)

    def check(self) -> None:
        """Refuse, in a sentence, settings that do not go together."""
        self.stage.names()
        if self.stage.level_replay and not self.stage.levels:
            raise ConfigError("--level-replay is for generated levels: add --levels.")
        if self.stage.levels:
            parse_count(self.stage.levels)
            if self.backend.backend != "native" or self.scale.on_cluster:
                raise ConfigError("--levels needs the native engine here: leave --backend and --cluster out.")
            if self.trail.trails not in ("", AUTO) or self.trail.arrivals:
                raise ConfigError("--levels has no trails or arrivals: leave --trails and --arrivals out.")
        self.decisions_per_minibatch()
        if self.run.learner == "native":
            if self.replay.per:
                raise ConfigError("The native learner has no replay: use --learner torch with --per.")
            if self.run.teachers:
                raise ConfigError("The native learner follows nobody: use --learner torch with --teachers.")
            if self.learn.weight_decay or self.learn.augment_coef:
                raise ConfigError(
                    "The native learner has no weight decay and no augmentation: use --learner torch with them."
                )
            from warpzone.learn.native import why_not_native

            if reason := why_not_native(self.model):
                raise ConfigError(reason)
        if self.collect.overlap_collect and self.run.deterministic:
            raise ConfigError("--overlap-collect depends on timing: leave it or --deterministic out.")
        if self.collect.overlap_collect and self.learn.recipe().targets != "vtrace":
            raise ConfigError(
                "--overlap-collect learns from actions of older weights, which only V-trace corrects: use --algo "
                "appo, --algo impala or --targets vtrace with it, or leave it out."
            )
        if self.scale.on_cluster and self.backend.backend != "native":
            raise ConfigError("--cluster runs the native engine: leave --backend out.")
        self._check_ranks()
        given = [
            f"--{name}" for name in ("trails", "arrivals") if getattr(self.trail, name) not in ("", AUTO)
        ]
        if given and self.backend.backend != "native":
            raise ConfigError(f"{given[0]} needs snapshots, which only the native backend has.")
        if len(given) > 1:
            raise ConfigError("--trails and --arrivals both decide where episodes start: leave one out.")
        forward = self.script.forward_action_id
        if forward is not None and not 0 <= forward < self.view.num_actions:
            names = ", ".join(f"{i} {name}" for i, name in enumerate(action_names(self.view.action_type)))
            raise ConfigError(f"There is no action {forward}: choose one of {names}.")

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def changed(self, part: str, **values: Any) -> TrainConfig:
        """The same settings with other values in one of their parts."""
        return dataclasses.replace(self, **{part: dataclasses.replace(getattr(self, part), **values)})

    @property
    def decisions_per_update(self) -> int:
        return self.collect.num_envs * self.collect.rollout_steps

    def decisions_per_minibatch(self) -> int:
        """Raises ConfigError where the rollout does not divide into minibatches."""
        recurrent = self.model.recurrent_type != "none"
        return self.learn.decisions_per_minibatch(
            self.collect.num_envs, self.collect.rollout_steps, recurrent
        )

    def architecture(self) -> dict[str, Any]:
        """What a checkpoint must share to be loaded: the shapes of the network."""
        model = dataclasses.asdict(self.model)
        del model["channels_last"]
        if custom_code.is_reference(self.model.encoder):
            # Its digest is compared where a run resumes.
            model["encoder"] = "custom"
        return {
            **model,
            "observation_shape": list(self.view.shape),
            "num_actions": self.view.num_actions,
            "value_heads": self.value_heads(),
            "value_stages": self.stage.names() if self.value_heads() > 1 else [],
        }

    def resolved(self) -> TrainConfig:
        """The same settings with the environments of all hosts counted, and the annealing in decisions."""
        config = self._with_hosts()
        learn = config.learn.in_decisions(config.decisions_per_update)
        config = dataclasses.replace(config, learn=learn)
        if (config.scale.gpus > 1 or config.trail.arrivals) and config.trail.trails == AUTO:
            # Where episodes start is decided by one learner's own play, and in one way.
            return config.changed("trail", trails="")
        return config

    def _with_hosts(self) -> TrainConfig:
        scale, collect = self.scale, self.collect
        if not scale.on_cluster:
            return self
        if collect.num_envs % scale.env_hosts and not scale.envs_per_host:
            raise ConfigError(
                f"{collect.num_envs} environments do not divide among {scale.env_hosts} hosts: use --envs-per-host."
            )
        each = scale.envs_per_host or collect.num_envs // scale.env_hosts
        # Hosts emulate one group of their environments while the frames of another are on the way.
        in_groups = each % collect.env_groups == 0
        collect = dataclasses.replace(collect, num_envs=each * scale.env_hosts, double_buffer=in_groups)
        return dataclasses.replace(self, collect=collect)

    def _check_ranks(self) -> None:
        gpus, scale = self.scale.gpus, self.scale
        if gpus == 1:
            return
        if scale.cluster == "local":
            raise ConfigError(
                "--cluster local is for one learner: run `ray start --head` and use --cluster auto."
            )
        if self.run.learner == "native":
            raise ConfigError("The native learner learns alone: use --learner torch with --gpus.")
        if self.trail.trails not in ("", AUTO):
            raise ConfigError("--trails is for one learner: leave it or --gpus out.")
        if self.run.teachers:
            raise ConfigError("--teachers is for one learner: leave it or --gpus out.")
        if self.run.go_back:
            raise ConfigError("--go-back is for one learner: leave it or --gpus out.")
        counts = {"--num-envs": self.collect.num_envs, "--minibatch-size": self.learn.minibatch_size}
        counts |= {"--env-hosts": scale.env_hosts} if scale.on_cluster else {}
        for name, count in counts.items():
            if count % gpus:
                raise ConfigError(
                    f"{name} {count} does not divide among {gpus} learners: use {-(-count // gpus) * gpus}."
                )
        self.of_rank(0, gpus).decisions_per_minibatch()

    def of_rank(self, rank: int, size: int) -> TrainConfig:
        """The part of one of several learners: its share of environments, hosts and minibatches, its own seed."""
        if size == 1:
            return self
        seed = self.run.seed if rank == 0 else self.run.seed + 1_000_003 * rank
        # Each learner anneals by its own decisions.
        anneal_steps = -(-self.reward.reward_scale_anneal_steps // size)
        return dataclasses.replace(
            self,
            run=dataclasses.replace(self.run, seed=seed),
            collect=dataclasses.replace(self.collect, num_envs=self.collect.num_envs // size),
            learn=dataclasses.replace(self.learn, minibatch_size=self.learn.minibatch_size // size),
            reward=dataclasses.replace(self.reward, reward_scale_anneal_steps=anneal_steps),
            scale=dataclasses.replace(self.scale, env_hosts=max(1, self.scale.env_hosts // size), gpus=size),
        )

    def value_heads(self) -> int:
        return len(self.stage.names()) if self.learn.normalise_values else 1

    def planned_updates(self) -> int:
        """Updates until a limit in updates or steps ends the run; 0 if only time or success does."""
        per_update = self.decisions_per_update
        by_steps = -(-self.run.total_steps // per_update) if self.run.total_steps else 0
        limits = [n for n in (self.run.total_updates, by_steps) if n]
        return min(limits) if limits else 0

    def saves_consoles(self) -> bool:
        """Whether checkpoints hold the consoles; those of nes-py can't be saved, nor any that never rest."""
        small = self.collect.num_envs * BYTES_PER_CONSOLE <= LARGEST_SAVED_CONSOLES
        at_rest = not self.collect.overlap_collect and self.backend.backend == "native"
        return self.run.checkpoint_envs and small and at_rest
