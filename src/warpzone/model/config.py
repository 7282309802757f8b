"""Settings of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warpzone.errors import ConfigError

EncoderName = Literal["tiny", "small", "nature", "impala", "strided"]
RecurrentType = Literal["none", "gru", "lstm", "transformer"]


@dataclass(frozen=True)
class ModelConfig:
    """What the policy looks like: encoder, memory, heads."""

    encoder: EncoderName = "nature"
    """tiny and small suit CPUs and small pictures, nature and strided GPUs; impala is for quality."""
    hidden: int = 0
    """Features the encoder gives; 0 takes the encoder's own default (128 to 512)."""
    width: float = 1.0
    """Multiplies the channels of the residual encoders (impala, strided)."""
    global_pool: bool = False
    """Average each channel of a residual encoder over the picture instead of flattening it."""
    recurrent_type: RecurrentType = "none"
    """Memory between the encoder and the heads."""
    memory_size: int = 0
    """Features of the memory; 0 takes as many as the encoder gives."""
    memory_length: int = 32
    """Past steps a transformer sees; older ones are dropped. A GRU or LSTM has no such bound."""
    transformer_layers: int = 1
    """Attention blocks of the transformer."""
    transformer_heads: int = 4
    """Attention heads; must divide the memory's features."""
    extra_dim: int = 0
    """Numbers given beside the picture (loop counters, stage), joined to its features before the memory."""
    channels_last: bool = True
    """Keep pictures and convolutions with the channels innermost, the layout that is fast on both devices."""

    def __post_init__(self) -> None:
        positive = ("width", "memory_length", "transformer_layers", "transformer_heads")
        for name in positive:
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be positive, not {getattr(self, name)}.")
        for name in ("hidden", "memory_size", "extra_dim"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative; it is {getattr(self, name)}.")
