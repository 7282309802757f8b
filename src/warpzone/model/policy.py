"""The policy: encoder, memory and heads behind `act` (one step) and `unroll` (many)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from warpzone.model.config import ModelConfig
from warpzone.model.encoder import build_encoder
from warpzone.model.initialise import orthogonal
from warpzone.model.memory import State, build_memory
from warpzone.model.snapshot import Snapshot, tensors_of


class ValueHead(nn.Module):
    """One value per stage, in units of return.

    The linear layer works in normalised units; `mean` and `std` (0 and 1 unless PopArt sets them) turn those
    into returns, so no caller needs to know whether values are normalised.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, features: int, num_heads: int) -> None:
        super().__init__()
        self.linear = orthogonal(nn.Linear(features, num_heads), 1.0)
        self.register_buffer("mean", torch.zeros(num_heads))
        self.register_buffer("std", torch.ones(num_heads))

    def forward(self, features: Tensor, stage: Tensor | None) -> Tensor:
        return self.in_returns(self.linear(features), stage)

    def in_returns(self, normalised: Tensor, stage: Tensor | None) -> Tensor:
        """The linear layer's values of all heads [..., V] in units of return [...]; without `stage` those of head 0."""
        values = normalised * self.std + self.mean
        if stage is None or values.shape[-1] == 1:
            return values[..., 0]
        return values.gather(-1, stage.unsqueeze(-1)).squeeze(-1)

    def scale(self, stage: Tensor) -> Tensor:
        """The deviation that the values of each stage are normalised by."""
        return self.std if len(self.std) == 1 else self.std[stage]


class Policy(nn.Module):
    """Maps stacked frames of `observation_shape` (channels, height, width) to action logits and a value.

    `autocast_dtype` lowers the encoder's precision on CUDA.
    """

    def __init__(
        self,
        config: ModelConfig,
        observation_shape: tuple[int, int, int],
        num_actions: int,
        num_value_heads: int = 1,
    ) -> None:
        super().__init__()
        self.config = config
        self.observation_shape = observation_shape
        self.num_actions = num_actions
        self.num_value_heads = num_value_heads
        self.autocast_dtype: torch.dtype | None = None
        self.encoder = build_encoder(config, observation_shape)
        self.memory = build_memory(config, self.encoder.hidden)
        self.logits = orthogonal(nn.Linear(self.memory.size, num_actions), 0.01)
        self.value = ValueHead(self.memory.size, num_value_heads)
        if config.channels_last:
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def is_recurrent(self) -> bool:
        return self.config.recurrent_type != "none"

    def initial_state(self, n: int, device: torch.device | str = "cpu") -> State:
        return self.memory.initial_state(n, torch.device(device))

    def act(
        self, obs: Tensor, state: State = (), starts: Tensor | None = None, *, stage: Tensor | None = None
    ) -> tuple[Tensor, Tensor, State]:
        """One step: logits [N, A], value [N] and the memory after it; without `stage` values are head 0's."""
        features = self._features(obs)
        if self.is_recurrent:
            assert starts is not None, "a policy with memory needs to know where episodes start"
            remembered, state = self.memory(features.unsqueeze(0), state, starts.unsqueeze(0))
            features = remembered.squeeze(0)
        return self.logits(features), self.value(features, stage), state

    def unroll(
        self, obs: Tensor, state: State, starts: Tensor, *, stage: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """T steps at once: logits [T, N, A] and values [T, N], the same numbers as T calls of `act`."""
        features = self._features(obs.flatten(0, 1)).view(*starts.shape, -1)
        features, _ = self.memory(features, state, starts)
        return self.logits(features), self.value(features, stage)

    @torch.no_grad()
    def install(self, snapshot: Snapshot) -> None:
        """Take on the weights of a snapshot of a policy of the same shape, on the current stream."""
        if snapshot.ready is not None:
            stream = torch.cuda.current_stream()
            stream.wait_event(snapshot.ready)
            for tensor in snapshot.weights:
                tensor.record_stream(stream)
        torch._foreach_copy_(tensors_of(self), list(snapshot.weights))

    def _features(self, obs: Tensor) -> Tensor:
        """Encoder in the lower precision if one is set; memory and heads always in float32."""
        with torch.autocast(obs.device.type, self.autocast_dtype, enabled=self.autocast_dtype is not None):
            features: Tensor = self.encoder(obs)
        return features.float()
