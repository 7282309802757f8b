"""Settings of the learner. `algo` names a recipe; a field set by hand wins over the recipe's."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from warpzone.errors import ConfigError, require
from warpzone.learn.schedules import ScheduleName

Algo = Literal["a3c", "impala", "appo", "ppo"]
TargetName = Literal["gae", "vtrace", "nstep"]
ObjectiveName = Literal["plain", "clipped"]
AdvantageScale = Literal["none", "global", "stage"]


@dataclass(frozen=True)
class Recipe:
    """The choices that tell the algorithms of this family apart."""

    targets: TargetName
    objective: ObjectiveName
    epochs: int
    minibatches: int
    gae_lambda: float
    normalise_advantages: AdvantageScale


RECIPES: dict[Algo, Recipe] = {
    "a3c": Recipe("nstep", "plain", 1, 1, 1.0, "global"),
    "impala": Recipe("vtrace", "plain", 1, 4, 1.0, "global"),
    "appo": Recipe("vtrace", "clipped", 4, 8, 0.95, "global"),
    "ppo": Recipe("gae", "clipped", 4, 8, 0.95, "global"),
}


@dataclass(frozen=True)
class LearnConfig:
    """How a rollout becomes new weights."""

    algo: Algo = "ppo"
    """Algorithm: a3c (n-step), impala (V-trace), appo (V-trace, clipped), ppo (GAE, clipped)."""
    targets: TargetName | None = None
    """Value and advantage targets; by default the algorithm's."""
    objective: ObjectiveName | None = None
    """Policy objective, plain or clipped (PPO); by default the algorithm's."""
    epochs: int | None = None
    """Passes over each rollout; by default the algorithm's."""
    minibatches: int | None = None
    """Gradient steps per pass, unless --minibatch-size is set; by default the algorithm's."""
    minibatch_size: int = 0
    """Decisions per gradient step (0 = rollout divided by --minibatches)."""
    grad_accum: int = 1
    """Slices per minibatch: the same gradient step with less memory."""

    gamma: float = 0.9
    """Discount per decision; the horizon is 1 / (1 - gamma) decisions."""
    gae_lambda: float | None = None
    """Lambda of GAE and V-trace, 0 to 1; by default the algorithm's."""
    bootstrap_stalls: bool = True
    """Bootstrap the value target of stalled episodes; otherwise a stall is terminal."""
    nstep: int = 0
    """Rewards in an n-step return (0 = the whole rollout)."""
    rho_clip: float = 1.0
    """V-trace: maximum importance weight of the TD error."""
    c_clip: float = 1.0
    """V-trace: maximum importance weight of the trace."""

    learning_rate: float = 5e-4
    """Initial learning rate of Adam."""
    lr_schedule: ScheduleName = "linear"
    """Learning rate schedule."""
    lr_final_fraction: float = 0.1
    """Final learning rate as a fraction of the initial one."""
    warmup_updates: int = 0
    """Updates of linear learning rate warm-up."""
    anneal_steps: int = 0
    """Decisions over which schedules anneal (0 = length of the run)."""
    anneal_updates: int = 0
    """The same in updates; overrides --anneal-steps."""
    anneal_by_success: bool = False
    """Also anneal as the clear rate rises: entropy fully, the learning rate 0.6 as far."""
    adam_eps: float = 1e-5
    """Epsilon of Adam."""
    weight_decay: float = 0.0
    """Weight decay: this share of each weight is added to its gradient (L2)."""
    max_grad_norm: float = 0.5
    """Maximum gradient norm; longer gradients are clipped (0 = no limit)."""

    entropy_coef: float = 0.01
    """Initial entropy coefficient."""
    entropy_final: float = 0.0005
    """Final entropy coefficient."""
    value_coef: float = 0.5
    """Value loss coefficient."""
    teacher_coef: float = 20.0
    """Initial distillation coefficient (with --teachers)."""
    teacher_final: float = 1.0
    """Final distillation coefficient (with --teachers)."""
    teacher_temperature: float = 0.5
    """Softmax temperature of teachers; below 1 sharpens their policies."""
    augment_coef: float = 0.0
    """Coefficient of the loss by which shifted observations must be played alike (DrAC)."""
    clip: float = 0.2
    """PPO clip range of the probability ratio."""
    value_clip: float = 0.0
    """Clip range of the value update (0 = no limit)."""
    target_kl: float = 0.03
    """Stop the passes of an update at this KL divergence (0 = never)."""

    normalise_rewards: bool = True
    """Divide rewards by the running deviation of the discounted return."""
    normalise_advantages: AdvantageScale | None = None
    """Normalise advantages over all stages or per stage; by default the algorithm's."""
    normalise_values: bool = False
    """Normalise value targets per stage (PopArt)."""

    amp: bool = True
    """Use mixed precision on CUDA."""
    amp_dtype: Literal["bfloat16", "float16"] = "bfloat16"
    """Lower precision of --amp."""
    compile: bool = False
    """Compile the encoder with torch.compile on CUDA."""
    cuda_graphs: bool = True
    """Replay the gradient step of a feed-forward policy as a CUDA graph."""

    def __post_init__(self) -> None:
        if self.algo not in RECIPES:
            raise ConfigError(f"algo must be one of {', '.join(RECIPES)}, not {self.algo!r}.")
        recipe = self.recipe()
        require(recipe, "epochs", "minibatches", at_least=1)
        require(recipe, "gae_lambda", at_least=0, at_most=1)
        require(self, "gamma", at_least=0, at_most=1)
        require(
            self, "learning_rate", "adam_eps", "clip", "rho_clip", "c_clip", "teacher_temperature", above=0
        )
        require(self, "grad_accum", at_least=1)
        counts = ("minibatch_size", "nstep", "warmup_updates", "anneal_steps", "anneal_updates")
        weights = ("target_kl", "value_clip", "teacher_coef", "teacher_final", "weight_decay", "augment_coef")
        require(self, *counts, *weights, at_least=0)

    def recipe(self) -> Recipe:
        """The recipe of `algo` with the fields set by hand."""
        by_hand = {field.name: getattr(self, field.name) for field in fields(Recipe)}
        return replace(RECIPES[self.algo], **{k: v for k, v in by_hand.items() if v is not None})

    def in_decisions(self, per_update: int) -> LearnConfig:
        """The same settings with `anneal_updates`, if set, counted in decisions."""
        if not self.anneal_updates:
            return self
        return replace(self, anneal_steps=self.anneal_updates * per_update, anneal_updates=0)

    def decisions_per_minibatch(self, num_envs: int, rollout_steps: int, recurrent: bool) -> int:
        """Decisions in each minibatch, or a ConfigError if the rollout does not divide into such minibatches.

        A policy with memory learns from whole sequences, so its minibatches are of whole environments.
        """
        size = self._minibatch(num_envs, rollout_steps, recurrent)
        if size is not None:
            return size
        fitting = (n for d in range(1, 1024) for n in (num_envs + d, num_envs - d) if n > 0)
        works = next((n for n in fitting if self._minibatch(n, rollout_steps, recurrent)), None)
        hint = f"--num-envs {works} works" if works else "choose another --minibatch-size or --grad-accum"
        size = self.minibatch_size or num_envs * rollout_steps // self.recipe().minibatches
        raise ConfigError(
            f"A rollout of {num_envs} x {rollout_steps} decisions does not divide into minibatches of {size}: {hint}."
        )

    def _minibatch(self, num_envs: int, rollout_steps: int, recurrent: bool) -> int | None:
        """Decisions in each minibatch; None if they don't divide."""
        total = num_envs * rollout_steps
        unit = (rollout_steps if recurrent else 1) * self.grad_accum
        size = self.minibatch_size or total // min(self.recipe().minibatches, max(1, total // unit))
        return None if total % size or size % unit else size


@dataclass(frozen=True)
class ReplayConfig:
    """Prioritised experience replay."""

    per: bool = False
    """Learn from a prioritised replay as well."""
    per_capacity: int = 131072
    """Maximum decisions in the replay; fewer if memory is short."""
    per_memory_fraction: float = 0.5
    """Maximum share of free memory for the replay, 0 to 1."""
    per_sample_interval: int = 1
    """Sample every Nth update; every update is stored."""
    per_batch_size: int = 256
    """Decisions per replayed gradient step."""
    per_batches: int = 1
    """Replayed gradient steps per update that samples."""
    per_alpha: float = 0.6
    """PER alpha: 0 samples uniformly, 1 in proportion to priorities."""
    per_beta: float = 0.4
    """Initial PER beta (importance correction, 0 to 1)."""
    per_beta_final: float = 1.0
    """Final PER beta."""
    per_beta_updates: int = 1000
    """Updates from the initial to the final PER beta."""
    per_policy_coef: float = 0.5
    """Coefficient of the replayed policy loss."""
    per_value_coef: float = 0.5
    """Coefficient of the replayed value loss."""
    per_gpu_sample: bool = False
    """Keep and sample the replay on the learner's device."""
    per_prefetch: bool = True
    """Sample the next batches in a thread during collection."""
    per_checkpoint: bool = False
    """Save the replay in checkpoints, for an exact resume."""

    def __post_init__(self) -> None:
        counts = ("per_capacity", "per_sample_interval", "per_batch_size", "per_batches", "per_beta_updates")
        require(self, *counts, at_least=1)
        require(self, "per_memory_fraction", "per_alpha", "per_beta", "per_beta_final", at_least=0, at_most=1)
