"""Memory between encoder and heads.

Every memory is a module `(x [T, N, D], state, starts [T, N]) -> (y [T, N, M], state)`. Where `starts` is
true the memory forgets before it sees that step. Acting is the same call with T = 1, so acting and learning
cannot differ. A state is a tuple of tensors with the batch dimension first.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from warpzone.errors import ConfigError
from warpzone.model.config import ModelConfig
from warpzone.model.initialise import orthogonal, orthogonal_cell

State = tuple[Tensor, ...]


class NoMemory(nn.Module):
    """Features pass through; the state is empty."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.size = features

    def initial_state(self, n: int, device: torch.device) -> State:
        return ()

    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        return x, state


class Recurrence(nn.Module):
    """A GRU or LSTM cell, stepped in Python: almost every step of a batch has an episode that starts."""

    def __init__(self, features: int, size: int, kind: str) -> None:
        super().__init__()
        self.size = size
        self.cell: nn.GRUCell | nn.LSTMCell
        self.cell = nn.GRUCell(features, size) if kind == "gru" else nn.LSTMCell(features, size)
        orthogonal_cell(self.cell)

    def initial_state(self, n: int, device: torch.device) -> State:
        zeros = torch.zeros(n, self.size, device=device)
        return (zeros,) if isinstance(self.cell, nn.GRUCell) else (zeros, zeros.clone())

    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        keeps = (~starts).unsqueeze(-1).to(x.dtype)
        outputs = []
        for step, keep in zip(x.unbind(0), keeps.unbind(0), strict=True):
            kept = tuple(part * keep for part in state)
            if isinstance(self.cell, nn.GRUCell):
                state = (self.cell(step, kept[0]),)
            else:
                state = self.cell(step, (kept[0], kept[1]))
            outputs.append(state[0])
        return torch.stack(outputs), state


class TransformerMemory(nn.Module):
    """Attention over the last `length` steps of the episode.

    The state holds, for every block, that block's inputs of the past `length` steps, and how many of them are
    of this episode. Each block attends over a band of the same width in acting and in learning, so T steps at
    once give the numbers of T single steps.
    """

    def __init__(self, features: int, size: int, length: int, layers: int, heads: int) -> None:
        super().__init__()
        if size % heads:
            raise ConfigError(f"transformer_heads ({heads}) must divide the memory's {size} features.")
        self.size = size
        self.length = length
        self.embed = orthogonal(nn.Linear(features, size), 1.0)
        self.blocks = nn.ModuleList(
            AttentionBlock(size, length, heads, 1.0 / layers**0.5) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(size)

    def initial_state(self, n: int, device: torch.device) -> State:
        window = torch.zeros(n, len(self.blocks), self.length, self.size, device=device)
        return window, torch.zeros(n, dtype=torch.int64, device=device)

    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        window, remembered = state
        steps = x.shape[0]
        x = self.embed(x).transpose(0, 1)
        episode = starts.to(torch.int64).cumsum(0).transpose(0, 1)
        visible, distance = self._visible(episode, remembered)
        kept = []
        for block, past in zip(self.blocks, window.unbind(1), strict=True):
            context = torch.cat([past.to(x.dtype), x], dim=1)
            kept.append(context[:, steps:])
            x = block(x, context, visible, distance)
        in_last_episode = (episode == episode[:, -1:]).sum(1)
        still_first = episode[:, -1] == 0
        remembered = torch.where(still_first, remembered + steps, in_last_episode).clamp_(max=self.length)
        return self.norm(x).transpose(0, 1), (torch.stack(kept, dim=1), remembered)

    def _visible(self, episode: Tensor, remembered: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the `length` remembered and T new steps each new step sees, and how far back they lie."""
        steps = episode.shape[1]
        queries = torch.arange(steps, device=episode.device)
        keys = torch.arange(-self.length, steps, device=episode.device)
        distance = queries[:, None] - keys[None, :]
        in_band = (distance >= 0) & (distance <= self.length)
        is_remembered = keys[None, : self.length] >= -remembered[:, None]
        past = torch.where(is_remembered, 0, -1)
        same_episode = episode[:, :, None] == torch.cat([past, episode], dim=1)[:, None, :]
        return in_band & same_episode, distance.clamp(0, self.length)


class AttentionBlock(nn.Module):
    """Pre-norm attention with a learned bias per distance, then a small feed-forward net."""

    def __init__(self, size: int, length: int, heads: int, residual_gain: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(size)
        self.query = orthogonal(nn.Linear(size, size), 1.0)
        self.key_value = orthogonal(nn.Linear(size, 2 * size), 1.0)
        self.merge = orthogonal(nn.Linear(size, size), residual_gain)
        self.distance_bias = nn.Parameter(torch.zeros(length + 1, heads))
        self.mlp_norm = nn.LayerNorm(size)
        self.expand = orthogonal(nn.Linear(size, 2 * size))
        self.contract = orthogonal(nn.Linear(2 * size, size), residual_gain)

    def forward(self, x: Tensor, context: Tensor, visible: Tensor, distance: Tensor) -> Tensor:
        query = self._split(self.query(self.attention_norm(x)))
        key, value = (self._split(part) for part in self.key_value(self.attention_norm(context)).chunk(2, -1))
        bias = self.distance_bias[distance].permute(2, 0, 1).to(query.dtype)
        mask = bias.masked_fill(~visible[:, None], float("-inf"))
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.merge(attended.transpose(1, 2).flatten(2))
        out: Tensor = x + self.contract(torch.relu(self.expand(self.mlp_norm(x))))
        return out

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


def build_memory(config: ModelConfig, features: int) -> NoMemory | Recurrence | TransformerMemory:
    size = config.memory_size or features
    match config.recurrent_type:
        case "none":
            return NoMemory(features)
        case "gru" | "lstm":
            return Recurrence(features, size, config.recurrent_type)
        case "transformer":
            return TransformerMemory(
                features, size, config.memory_length, config.transformer_layers, config.transformer_heads
            )
