"""The learner: one update from one rollout. The algorithms of the family differ only in their `Recipe`."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.distillation import Teachers
from warpzone.learn.interval import IntervalMeans
from warpzone.learn.losses import action_logp, explained_variance, normalise_advantages
from warpzone.learn.minibatch import Samples, shuffled
from warpzone.learn.normalise import PopArt, RewardScale
from warpzone.learn.random_state import restore_stream
from warpzone.learn.ranks import ALONE, Ranks
from warpzone.learn.replay import PrioritisedReplay
from warpzone.learn.rollout import Rollout
from warpzone.learn.schedules import Adaptation, AdaptiveConfig, ScheduleName, scheduled
from warpzone.learn.step import KL, STATISTICS, Demonstration, GradientStep, GraphedStep
from warpzone.learn.targets import Targets, Trajectory, gae, nstep, vtrace
from warpzone.model.policy import Policy
from warpzone.model.snapshot import Snapshot, take_snapshot
from warpzone.watch.profile import phase

# Decisions evaluated at once where no gradient is needed; bounds the memory.
EVALUATION_SIZE = 16384
# How much of the clear rate anneals the learning rate: all of it left too little to get from 90 to 95 %.
LR_BY_SUCCESS = 0.6
FORGOTTEN = 1e-7
"""Of the best success, per decision: a task that has become harder (random starts, noise) gets its exploration back."""

OF_WEIGHTS = ("policy", "optimizer", "scaler", "reward_scale", "popart")
"""The parts of the learner's state that belong to its weights; the others count what was done."""


class Learner:
    """Turns rollouts into weights. `policy` is moved to `device` and trained in place."""

    def __init__(
        self,
        policy: Policy,
        config: LearnConfig,
        *,
        replay: ReplayConfig | None = None,
        teachers: Teachers | None = None,
        adaptive: AdaptiveConfig | None = None,
        total_updates: int = 0,
        decisions_per_update: int = 1,
        device: torch.device | str = "cpu",
        seed: int = 0,
        ranks: Ranks = ALONE,
    ) -> None:
        """`decisions_per_update` places a resumed run on its schedules before its first update."""
        self.device = torch.device(device)
        self.policy = policy.to(self.device)
        self.config = config
        self.recipe = config.recipe()
        self.total_updates = total_updates
        self.per_update = decisions_per_update
        self.version = 0
        self.decisions = 0
        """Decisions learned from so far."""
        self.success = 0.0
        """Mean clear rate over the stages, told by the training loop once an update."""
        self.best_success = 0.0
        """The best so far, also along trails, less what is forgotten of it."""
        if self.device.type == "cuda":
            policy.autocast_dtype = getattr(torch, config.amp_dtype) if config.amp else None
            if config.compile:
                policy.encoder.compile()
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.ranks = ranks
        self.step = GradientStep(policy, config, ranks)
        self.graphed: dict[int, GraphedStep] = {}
        rewards, values = config.normalise_rewards, config.normalise_values
        self.reward_scale = RewardScale(config.gamma, self.device, ranks=ranks) if rewards else None
        self.popart = PopArt(policy.value, ranks=ranks) if values else None
        self.adaptation = Adaptation(adaptive or AdaptiveConfig())
        self.teachers = teachers
        self.replay_config = replay or ReplayConfig()
        self.replay: PrioritisedReplay | None = None
        self.seed = seed
        self.interval = IntervalMeans()
        """The numbers of the updates since they were last read."""
        self.demonstration: Demonstration = lambda update: ()
        self._saved_replay: dict[str, Any] | None = None
        self._snapshot = take_snapshot(policy, self.version)

    def policy_snapshot(self) -> Snapshot:
        """The weights after the last update; safe to call from any thread."""
        return self._snapshot

    @property
    def learning_rate(self) -> float:
        """Of the next update."""
        config, start = self.config, self.config.learning_rate
        final, success = start * config.lr_final_fraction, LR_BY_SUCCESS * self.success
        planned = self._scheduled(config.lr_schedule, start, final, config.warmup_updates, success)
        return planned * self.adaptation.lr_scale

    @property
    def entropy_coef(self) -> float:
        """Of the next update."""
        start, final = self.config.entropy_coef, self.config.entropy_final
        return self._scheduled("linear", start, final, success=self.success) * self.adaptation.entropy_scale

    @property
    def teacher_coef(self) -> float:
        """Of the next update."""
        return self._scheduled("linear", self.config.teacher_coef, self.config.teacher_final)

    def _scheduled(
        self, name: ScheduleName, start: float, final: float, warmup_updates: int = 0, success: float = 0.0
    ) -> float:
        """The value of a schedule. How long a stage takes is not known: with `anneal_by_success`, exploration ends by
        success and comes back when that is lost. A schedule that is over begins anew, twice as long, as far back as the
        best success allows: what was learned would not survive its start."""
        config, step = self.config, self.per_update
        total = step * config.anneal_updates or config.anneal_steps or step * self.total_updates
        warmup, done = step * warmup_updates, self.decisions
        while config.anneal_by_success and 0 < total <= done:
            done, total, success = done - total, 2 * total, self.best_success
        if config.anneal_by_success and done >= warmup:
            done = max(done, int(success * (total - step)))
        return scheduled(name, done, total, start, final, step=step, warmup=warmup)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from a rollout; the numbers returned are means over the update's gradient steps."""
        started = time.perf_counter()
        self.per_update = rollout.num_decisions * self.ranks.size
        remembered = self.best_success - FORGOTTEN * self.per_update
        self.best_success = max(remembered, self.success)
        learning_rate, entropy_coef = self.learning_rate, self.entropy_coef
        self.step.set_rates(learning_rate, entropy_coef, self.teacher_coef)
        policy_lag = self.version - rollout.version.double().mean().item()
        with phase("targets"):
            samples = self._prepare(rollout, lagging=policy_lag > 0)
            if self.teachers is not None:
                samples.teacher = self.teachers.probabilities(samples)
        with phase("learning"):
            sums, steps, epochs = self._learn(samples)
        with phase("replay"):
            replayed = self._learn_from_replay(samples)
        replayed |= self.step.imitate(self.demonstration(self.version))
        self.version += 1
        self.decisions += self.per_update
        self._snapshot = take_snapshot(self.policy, self.version)
        numbers = {
            **dict(zip(STATISTICS, (sums / steps).tolist(), strict=True)),
            **replayed,
            "learning_rate": learning_rate,
            "entropy_coef": entropy_coef,
            "explained_variance": explained_variance(samples.floats[3], samples.floats[2]).item(),
            "policy_lag": policy_lag,
            "epochs": float(epochs),
            "reward_scale": self.reward_scale.std().item() if self.reward_scale else 1.0,
            "learn_time": time.perf_counter() - started,
        }
        self.interval.add(numbers)
        return numbers

    @torch.no_grad()
    def _prepare(self, rollout: Rollout, lagging: bool) -> Samples:
        """Targets for the whole rollout, once per update."""
        rewards = rollout.rewards
        if self.reward_scale is not None:
            rewards = self.reward_scale(rewards, rollout.ends)
        logp, values, bootstrap = rollout.logp, rollout.values, rollout.bootstrap
        truncation_value = rollout.truncation_value
        if lagging and self.recipe.targets == "vtrace":
            logp, values, bootstrap = self._evaluate(rollout)
            truncation_value = self._truncation_values(rollout)
        if not self.config.bootstrap_stalls:
            truncation_value = truncation_value.masked_fill(rollout.stalled, 0.0)
        trajectory = Trajectory(
            rewards, values, rollout.terminated, rollout.truncated, truncation_value, bootstrap
        )
        returns, advantages = self._targets(trajectory, logp - rollout.logp)
        if self.popart is not None:
            self.popart.update(returns, rollout.stage)
        self.advantage_std = (self.ranks.sum(advantages.var()) / self.ranks.size).sqrt().clamp(min=1e-8)
        if self.recipe.normalise_advantages != "none":
            by_stage = self.recipe.normalise_advantages == "stage"
            num_stages = self.ranks.largest(int(rollout.stage.max()) + 1) if by_stage else 1
            stage = rollout.stage if by_stage else None
            advantages = normalise_advantages(advantages, stage, num_stages, self.ranks)
        augment = self.generator if self.config.augment_coef else None
        return Samples(rollout, logp, advantages, returns, values, augment)

    def _targets(self, trajectory: Trajectory, log_ratio: Tensor) -> Targets:
        config, lam = self.config, self.recipe.gae_lambda
        match self.recipe.targets:
            case "gae":
                return gae(trajectory, config.gamma, lam)
            case "vtrace":
                return vtrace(trajectory, log_ratio, config.gamma, lam, config.rho_clip, config.c_clip)
            case "nstep":
                return nstep(trajectory, config.gamma, config.nstep or trajectory.rewards.shape[0])

    def _evaluate(self, rollout: Rollout) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, values and bootstrap of a rollout under the current weights."""
        logits, values = [], []
        steps, envs = rollout.steps + 1, torch.arange(rollout.num_envs, device=self.device)
        for part in envs.split(max(1, EVALUATION_SIZE // steps)):  # type: ignore[no-untyped-call]
            part_logits, part_values = self.policy.unroll(
                rollout.sequences(part, steps),
                tuple(memory.index_select(0, part) for memory in rollout.state0),
                (rollout.age == 0).index_select(1, part),
                stage=rollout.stage_ahead.index_select(1, part),
            )
            logits.append(part_logits[:-1])
            values.append(part_values)
        logp, _ = action_logp(torch.cat(logits, dim=1), rollout.actions)
        all_values = torch.cat(values, dim=1)
        return logp, all_values[:-1], all_values[-1]

    def _truncation_values(self, rollout: Rollout) -> Tensor:
        """`truncation_value` under the current weights; memories are those of the weights that acted."""
        values = rollout.truncation_value.clone()
        if rollout.finals:
            steps, envs, obs, states = zip(*rollout.finals, strict=True)
            at = torch.cat(steps), torch.cat(envs)
            memory = tuple(torch.cat(parts) for parts in zip(*states, strict=True))
            starts = torch.zeros(len(at[0]), dtype=torch.bool, device=self.device)
            _, values[at], _ = self.policy.act(torch.cat(obs), memory, starts, stage=rollout.stage[at])
        return values

    def _learn(self, samples: Samples) -> tuple[Tensor, int, int]:
        """All passes over the samples: summed statistics, gradient steps and passes made."""
        rollout = samples.rollout
        recurrent = self.policy.is_recurrent
        size = self.config.decisions_per_minibatch(rollout.num_envs, rollout.steps, recurrent)
        count = rollout.num_envs if recurrent else rollout.num_decisions
        per_step = size // rollout.steps if recurrent else size
        sums = torch.zeros_like(self.step.statistics)
        steps = 0
        for epoch in range(1, self.recipe.epochs + 1):
            for index in shuffled(count, per_step, self.generator, self.device):
                self._minibatch(samples, index)
            epoch_sums = self.step.take_statistics()
            epoch_steps = count // per_step
            sums += epoch_sums
            steps += epoch_steps
            is_last = epoch == self.recipe.epochs
            if self.config.target_kl and not is_last:
                moved = epoch_sums[KL].item() / epoch_steps
                if moved > self.config.target_kl:
                    break
        return sums, steps, epoch

    def _minibatch(self, samples: Samples, index: Tensor) -> None:
        slices = index.split(len(index) // self.config.grad_accum)  # type: ignore[no-untyped-call]
        if self.policy.is_recurrent:
            self.step([samples.sequences(part) for part in slices])
        elif self._uses_graph():
            self._graphed_minibatch(samples, index)
        else:
            self.step([samples.decisions(part) for part in slices])

    def _uses_graph(self) -> bool:
        config = self.config
        # What the ranks say to each other is no part of a graph.
        fits = config.grad_accum == 1 and not self.step.scaler.is_enabled() and self.ranks.size == 1
        return config.cuda_graphs and self.device.type == "cuda" and fits

    def _graphed_minibatch(self, samples: Samples, index: Tensor) -> None:
        graphed = self.graphed.get(len(index))
        if graphed is None:
            graphed = self.graphed[len(index)] = GraphedStep(self.step, samples.decisions(index))
        else:
            samples.decisions(index, out=graphed.batch)
        graphed()

    def _learn_from_replay(self, samples: Samples) -> dict[str, float]:
        """Store every update; on every `per_sample_interval`th, learn from what was stored. Returns its numbers."""
        config = self.replay_config
        if not config.per:
            return {}
        if self.replay is None:
            recurrent = self.policy.is_recurrent
            self.replay = PrioritisedReplay(
                config, samples.rollout, recurrent=recurrent, device=self.device, seed=self.seed
            )
            if self._saved_replay is not None:
                self.replay.load_state_dict(self._saved_replay)
                self._saved_replay = None
        replay = self.replay
        _, _, returns, values = samples.floats
        replay.push(samples.rollout, returns, returns - values)
        replay.anneal(self.version)
        interval = config.per_sample_interval
        losses = []
        if (self.version + 1) % interval == 0:
            for replayed in replay.sample():
                loss, errors = self.step.replay(replayed.batch, config, self.advantage_std)
                replay.update_priorities(replayed, errors)
                losses.append(loss)
        if (self.version + 2) % interval == 0:
            replay.prefetch()
        return {**replay.stats(), **({"loss_per": float(sum(losses)) / len(losses)} if losses else {})}

    def close(self) -> None:
        """Stop the replay's thread."""
        if self.replay is not None:
            self.replay.close()

    def state_dict(self) -> dict[str, Any]:
        """Everything an exact continuation needs; the replay only with `per_checkpoint`."""
        return {
            "replay": self.replay.state_dict() if self.replay and self.replay_config.per_checkpoint else None,
            "version": self.version,
            "decisions": self.decisions,
            "success": self.success,
            "best_success": self.best_success,
            "policy": self.policy.state_dict(),
            "optimizer": self.step.optimizer.state_dict(),
            "scaler": self.step.scaler.state_dict(),
            "generator": self.generator.get_state(),
            "reward_scale": self.reward_scale.state_dict() if self.reward_scale else None,
            "popart": self.popart.state_dict() if self.popart else None,
            "adaptation": self.adaptation.state_dict(),
            "interval": self.interval.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.version = state["version"]
        # Older checkpoints hold no count: as many as there would be with today's rollouts.
        self.decisions = state.get("decisions", self.version * self.per_update)
        self.success = state.get("success", 0.0)
        self.best_success = state.get("best_success", self.success)
        self.policy.load_state_dict(state["policy"])
        self.step.load_optimizer(state["optimizer"])
        self.step.scaler.load_state_dict(state["scaler"])
        restore_stream(self.generator, state["generator"])
        if self.reward_scale and state["reward_scale"]:
            self.reward_scale.load_state_dict(state["reward_scale"])
        if self.popart and state["popart"]:
            self.popart.load_state_dict(state["popart"])
        self.adaptation.load_state_dict(state["adaptation"])
        if "interval" in state:
            self.interval.load_state_dict(state["interval"])
        # The replay is allocated when the first rollout shows its shape; the saved one is loaded then.
        self._saved_replay = state["replay"]
        self.replay = None
        # Loading gave Adam new tensors; a recorded graph would still write to the old ones.
        self.graphed.clear()
        self._snapshot = take_snapshot(self.policy, self.version)
