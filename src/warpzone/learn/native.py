"""The learner of `learn.learner` with native/net doing the arithmetic: small nets without memory, on a CPU.

Policy and learner are the torch ones in everything but the arithmetic: parameters and Adam's moments are
torch tensors whose memory is the native net's, so snapshots, checkpoints and PopArt work unchanged, and a run
can continue with either learner.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from warpzone import custom_code
from warpzone.engine import _native
from warpzone.errors import ConfigError
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.learn.losses import action_logp
from warpzone.learn.minibatch import Samples, shuffled
from warpzone.learn.rollout import Rollout
from warpzone.learn.step import KL, STATISTICS, Batches, GradientStep
from warpzone.model.config import ModelConfig
from warpzone.model.encoder import Encoder
from warpzone.model.memory import State
from warpzone.model.policy import Policy

ENCODERS = ("tiny", "small", "nature")


def why_not_native(config: ModelConfig) -> str | None:
    """The reason a model cannot run natively, as a sentence; None if it can."""
    if custom_code.is_reference(config.encoder):
        return "A custom encoder needs the torch learner: use --learner torch."
    if config.encoder not in ENCODERS:
        return f"The native learner has the encoders {', '.join(ENCODERS)}, not {config.encoder}."
    if config.recurrent_type != "none":
        return f"The native learner has no memory; {config.recurrent_type} needs the torch one."
    return None


class NativePolicy(Policy):
    """A Policy whose parameters live in a native net, which computes whatever needs no gradient.

    One thread at a time may call it. Parameters may be written in place as those of any module: the net notices.
    """

    def __init__(
        self,
        config: ModelConfig,
        observation_shape: tuple[int, int, int],
        num_actions: int,
        num_value_heads: int = 1,
        *,
        threads: int = 0,
        kernels: str = "",
    ) -> None:
        """`threads` 0 takes as many as torch uses; `kernels` names an instruction set, "" the best."""
        if reason := why_not_native(config):
            raise ConfigError(reason)
        super().__init__(config, observation_shape, num_actions, num_value_heads)
        assert isinstance(self.encoder, Encoder)
        convolutions = [layer for layer in self.encoder.body if isinstance(layer, nn.Conv2d)]
        self.net: Any = _native.Net(
            observation_shape,
            [(layer.out_channels, layer.kernel_size[0], layer.stride[0]) for layer in convolutions],
            [self.encoder.hidden],
            num_actions,
            num_value_heads,
            threads=threads or torch.get_num_threads(),
            kernels=kernels,
        )
        layers: list[nn.Conv2d | nn.Linear] = [*convolutions, self.encoder.fc]
        tensors = [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
        heads = self.logits, self.value.linear
        tensors += [head.weight for head in heads] + [head.bias for head in heads]
        self.shared = cast("list[nn.Parameter]", tensors)
        """The parameters, in the net's order."""
        for parameter, view in zip(self.shared, self.views(self.net.weights), strict=True):
            parameter.data = view.copy_(parameter.data)
        self._addresses = [parameter.data_ptr() for parameter in self.shared]
        self._seen: list[int] = []

    def views(self, flat: np.ndarray[Any, np.dtype[np.float32]]) -> list[Tensor]:
        """One of the net's flat buffers as tensors shaped like the parameters, in the net's order."""
        tensor = torch.from_numpy(flat)
        ends = [(offset, offset + int(np.prod(shape)), shape) for _, offset, shape in self.net.parameters]
        return [tensor[begin:end].view(shape) for begin, end, shape in ends]

    def act(
        self, obs: Tensor, state: State = (), starts: Tensor | None = None, *, stage: Tensor | None = None
    ) -> tuple[Tensor, Tensor, State]:
        """As `Policy.act`; native where gradients are off."""
        if torch.is_grad_enabled():
            return super().act(obs, state, starts, stage=stage)
        logits, values = self.evaluate(obs)
        return logits, self.value.in_returns(values, stage), state

    def evaluate(self, frames: Tensor, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and all value heads [B, V], these in the units of the linear layer.

        `frames` are observations [B, C, H, W], or with `index` [B, S] single frames to be stacked.
        """
        rows = _rows(index)
        n = len(frames if rows is None else rows)
        logits, values = torch.empty(n, self.num_actions), torch.empty(n, self.num_value_heads)
        self.sync()
        self.net.forward(frames.contiguous().numpy(), logits.numpy(), values.numpy(), rows)
        return logits, values

    def sync(self) -> None:
        """Tell the net if parameters were written since it last looked."""
        if [parameter.data_ptr() for parameter in self.shared] != self._addresses:
            raise RuntimeError("A NativePolicy's parameters can be written, not replaced.")
        versions = [parameter._version for parameter in self.shared]
        if versions != self._seen:
            self.net.weights_changed()
            self._seen = versions

    def __deepcopy__(self, memo: dict[int, Any]) -> NativePolicy:
        copied = NativePolicy(
            self.config,
            self.observation_shape,
            self.num_actions,
            self.num_value_heads,
            threads=self.net.threads,
            kernels=self.net.kernels,
        )
        copied.load_state_dict(self.state_dict())
        memo[id(self)] = copied
        return copied


class _NativeStep(GradientStep):
    """Imitates by torch, and tells the net: torch's fused Adam writes parameters without counting versions."""

    policy: NativePolicy

    def imitate(self, batches: Batches) -> dict[str, float]:
        numbers = super().imitate(batches)
        if numbers:
            counts = [self.optimizer.state[parameter]["step"] for parameter in self.policy.shared]
            # Values are not imitated, so the counts of their parameters are behind.
            self.policy.net.adam_steps = int(max(counts))
            for count in counts:
                count.fill_(self.policy.net.adam_steps)
            self.policy.net.weights_changed()
        return numbers


class NativeLearner(Learner):
    """`Learner` with the passes over a rollout, and evaluating it under newer weights, done natively.

    `grad_accum` makes no difference: a minibatch is computed tile by tile anyway.
    """

    policy: NativePolicy

    def __init__(self, policy: NativePolicy, config: LearnConfig, **options: Any) -> None:
        """`options` are those of `Learner`, but for replay and teachers."""
        device = options.get("device", "cpu")
        if torch.device(device).type != "cpu":
            raise ConfigError(f"The native learner runs on the CPU, not on {device}.")
        super().__init__(policy, config, **options)
        self.step = _NativeStep(policy, config)
        self._share_moments()

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        # Torch's fused Adam expects moments laid out as the parameters of a torch policy are.
        layout = torch.channels_last if self.policy.config.channels_last else torch.contiguous_format
        moments = state["optimizer"]["state"]
        for index, entry in moments.items():
            moments[index] = {
                name: value.clone(memory_format=layout if value.dim() == 4 else torch.contiguous_format)
                for name, value in entry.items()
            }
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._share_moments()

    def _share_moments(self) -> None:
        """Let the optimizer's state be views of the net's, with the values the optimizer has."""
        policy, net, optimizer = self.policy, self.policy.net, self.step.optimizer
        first, second = policy.views(net.first_moment), policy.views(net.second_moment)
        net.adam_steps = 0
        for parameter, mean, square in zip(policy.shared, first, second, strict=True):
            old = optimizer.state.get(parameter)
            if old:
                net.adam_steps = int(old["step"])
            optimizer.state[parameter] = {
                "step": torch.tensor(float(net.adam_steps)),
                "exp_avg": mean.copy_(old["exp_avg"]) if old else mean.zero_(),
                "exp_avg_sq": square.copy_(old["exp_avg_sq"]) if old else square.zero_(),
            }

    def _evaluate(self, rollout: Rollout) -> tuple[Tensor, Tensor, Tensor]:
        steps = torch.arange(rollout.steps + 1).repeat_interleave(rollout.num_envs)
        envs = torch.arange(rollout.num_envs).repeat(rollout.steps + 1)
        logits, heads = self.policy.evaluate(rollout.frames, rollout.frame_index(steps, envs))
        values = self.policy.value.in_returns(heads, rollout.stage_ahead.flatten()).view(-1, rollout.num_envs)
        logp, _ = action_logp(logits[: rollout.num_decisions], rollout.actions.flatten())
        return logp.view_as(rollout.actions), values[:-1], values[-1]

    def _learn(self, samples: Samples) -> tuple[Tensor, int, int]:
        config, policy = self.config, self.policy
        rollout = samples.rollout
        count = rollout.num_decisions
        size = config.decisions_per_minibatch(rollout.num_envs, rollout.steps, recurrent=False)
        batch = self._batch(samples)
        entropy_coef = self.entropy_coef
        objective = _native.NetObjective(
            clipped=self.step.clipped,
            clip=config.clip,
            value_coefficient=config.value_coef,
            value_clip=config.value_clip,
            entropy_coefficient=entropy_coef,
        )
        sums = torch.zeros(len(STATISTICS))
        steps_per_epoch = count // size
        policy.sync()
        for epoch in range(1, self.recipe.epochs + 1):
            order = torch.cat(list(shuffled(count, size, self.generator, self.device)))
            means = policy.net.train(
                batch,
                order.numpy(),
                minibatch=size,
                objective=objective,
                learning_rate=self.learning_rate,
                epsilon=config.adam_eps,
                max_gradient_norm=config.max_grad_norm,
            )
            statistics = _statistics(means, config.value_coef, entropy_coef)
            sums += steps_per_epoch * statistics
            is_last = epoch == self.recipe.epochs
            if config.target_kl and not is_last and statistics[KL] > config.target_kl:
                break
        for parameter in policy.shared:
            self.step.optimizer.state[parameter]["step"].fill_(policy.net.adam_steps)
        return sums, epoch * steps_per_epoch, epoch

    def _batch(self, samples: Samples) -> Any:
        """The samples as the net takes them, values in the units of its linear layer."""
        rollout, head = samples.rollout, self.policy.value
        logp, advantages, returns, values = (column.flatten() for column in samples.floats)
        has_heads = self.policy.num_value_heads > 1
        if self.config.normalise_values:
            stage = rollout.stage.flatten() if has_heads else torch.zeros(len(logp), dtype=torch.int64)
            mean, std = head.mean[stage], head.std[stage]
            returns, values = (returns - mean) / std, (values - mean) / std
        elif (head.std != 1).any() or (head.mean != 0).any():
            raise ConfigError("These weights have normalised values, which needs normalise_values.")
        return _native.NetBatch(
            frames=rollout.frames.contiguous().numpy(),
            indices=_rows(samples.frame_index),
            actions=rollout.actions.flatten().numpy(),
            stages=rollout.stage.flatten().numpy() if has_heads else None,
            old_logp=logp.numpy(),
            advantages=advantages.numpy(),
            targets=returns.numpy(),
            old_values=values.numpy(),
        )


def _rows(index: Tensor | None) -> np.ndarray[Any, np.dtype[np.int32]] | None:
    """Numbers of frames as the net takes them."""
    return None if index is None else index.to(torch.int32).contiguous().numpy()


def _statistics(means: dict[str, float], value_coef: float, entropy_coef: float) -> Tensor:
    """The net's numbers in the order of STATISTICS."""
    total = means["policy_loss"] + value_coef * means["value_loss"] - entropy_coef * means["entropy"]
    losses = [total, means["policy_loss"], means["value_loss"], 0.0, 0.0]
    names = "entropy", "approx_kl", "clip_fraction", "grad_norm"
    return torch.tensor([*losses, *(means[name] for name in names)])
