"""Settings of the learner. `algo` names a recipe; a field set by hand wins over the recipe's."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from warpzone.errors import ConfigError
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
    """Recipe: a3c (n-step, plain), impala (V-trace, plain), appo (V-trace, clipped) or ppo (GAE, clipped)."""
    targets: TargetName | None = None
    """What values and actions are judged against; by default the recipe's."""
    objective: ObjectiveName | None = None
    """Plain policy gradient or PPO's clipped one; by default the recipe's."""
    epochs: int | None = None
    """Passes over each rollout; by default the recipe's."""
    minibatches: int | None = None
    """Gradient steps in each pass; by default the recipe's. `minibatch_size` takes precedence."""
    minibatch_size: int = 0
    """Decisions in each gradient step; 0 divides the rollout into `minibatches`."""
    grad_accum: int = 1
    """Slices in which each minibatch is computed: the same step in less memory."""

    gamma: float = 0.9
    """Discount per decision: 0.9 looks ten decisions ahead, 0.97 thirty. Trees and lifts want the longer look."""
    gamma_start: float = 0.0
    """Discount at the start, rising to `gamma` in effective horizon; 0 keeps `gamma` throughout."""
    gamma_anneal_steps: int = 2_000_000
    """Decisions over which the discount rises from `gamma_start`."""
    gae_lambda: float | None = None
    """Trade of bias (0) against variance (1) in GAE and V-trace; by default the recipe's."""
    nstep: int = 0
    """Rewards in an n-step return; 0 takes all of the rollout."""
    rho_clip: float = 1.0
    """V-trace: largest weight of a step that older weights chose."""
    c_clip: float = 1.0
    """V-trace: largest weight with which later steps are passed back."""

    learning_rate: float = 5e-4
    """Adam's step size at the start."""
    lr_schedule: ScheduleName = "linear"
    """How the learning rate goes from `learning_rate` to `lr_final_fraction` of it."""
    lr_final_fraction: float = 0.1
    """The learning rate at the end, as a fraction of that at the start."""
    warmup_updates: int = 0
    """Updates over which the learning rate rises to `learning_rate`."""
    anneal_updates: int = 0
    """Updates over which learning rate, entropy and teachers are annealed; 0 takes the length of the run."""
    adam_eps: float = 1e-5
    """Added to Adam's denominator."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are shortened to it; 0 leaves them."""

    entropy_coef: float = 0.01
    """Weight of the entropy bonus at the start."""
    entropy_final: float = 0.0005
    """Weight of the entropy bonus at the end; linear in between."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    teacher_coef: float = 20.0
    """With `--teachers`: weight of how far the policy is from theirs, at the start."""
    teacher_final: float = 1.0
    """With `--teachers`: that weight at the end; linear in between."""
    teacher_temperature: float = 0.5
    """With `--teachers`: below 1 their likelier actions become likelier still, above 1 less so."""
    clip: float = 0.2
    """Clipped objective: how far a probability may move, as a ratio."""
    value_clip: float = 0.0
    """How far a value may move within an update; 0 is no limit."""
    target_kl: float = 0.03
    """Passes stop once the policy has moved this far since the start of the update; 0 never stops."""

    normalise_rewards: bool = True
    """Divide rewards by the running standard deviation of the discounted return."""
    normalise_advantages: AdvantageScale | None = None
    """Bring advantages to mean 0 and deviation 1, over all or within each stage; by default the recipe's."""
    normalise_values: bool = False
    """Keep each stage's value targets at mean 0 and deviation 1 (PopArt)."""

    amp: bool = True
    """Run the encoder in lower precision on CUDA; a CPU always computes in float32."""
    amp_dtype: Literal["bfloat16", "float16"] = "bfloat16"
    """The lower precision."""
    compile: bool = False
    """Compile the encoder with torch.compile on CUDA."""
    cuda_graphs: bool = True
    """Replay the gradient step of a policy without memory as one CUDA graph."""

    def __post_init__(self) -> None:
        if self.algo not in RECIPES:
            raise ConfigError(f"algo must be one of {', '.join(RECIPES)}, not {self.algo!r}.")
        recipe = self.recipe()
        for name in ("epochs", "minibatches"):
            if getattr(recipe, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(recipe, name)}.")
        for name in (
            "learning_rate",
            "adam_eps",
            "clip",
            "rho_clip",
            "c_clip",
            "grad_accum",
            "teacher_temperature",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be positive, not {getattr(self, name)}.")
        for name in (
            "minibatch_size",
            "nstep",
            "warmup_updates",
            "anneal_updates",
            "gamma_anneal_steps",
            "target_kl",
            "value_clip",
            "teacher_coef",
            "teacher_final",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative; it is {getattr(self, name)}.")
        rates = (("gamma", self.gamma), ("gamma_start", self.gamma_start), ("gae_lambda", recipe.gae_lambda))
        for name, value in rates:
            if not 0 <= value <= 1:
                raise ConfigError(f"{name} must lie between 0 and 1; it is {value}.")

    def recipe(self) -> Recipe:
        """The recipe of `algo` with the fields set by hand."""
        by_hand = {field.name: getattr(self, field.name) for field in fields(Recipe)}
        return replace(RECIPES[self.algo], **{k: v for k, v in by_hand.items() if v is not None})

    def decisions_per_minibatch(self, num_envs: int, rollout_steps: int, recurrent: bool) -> int:
        """Decisions in each minibatch, or a ConfigError if the rollout does not divide into such minibatches.

        A policy with memory learns from whole sequences, so its minibatches are of whole environments.
        """
        total = num_envs * rollout_steps
        unit = (rollout_steps if recurrent else 1) * self.grad_accum
        size = self.minibatch_size or total // min(self.recipe().minibatches, max(1, total // unit))
        if total % size or size % unit:
            raise ConfigError(
                f"A rollout of {num_envs} x {rollout_steps} decisions does not divide into minibatches of "
                f"{size}, each a multiple of {unit}; choose another minibatch_size, num_envs or grad_accum."
            )
        return size
