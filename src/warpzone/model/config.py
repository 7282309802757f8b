"""Settings of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warpzone import custom_code
from warpzone.errors import ConfigError, require

ENCODERS = ("tiny", "small", "nature", "impala", "strided")
RecurrentType = Literal["none", "gru", "lstm", "transformer"]


@dataclass(frozen=True)
class ModelConfig:
    """The network: encoder, memory, heads."""

    encoder: str = "nature"
    """Encoder: tiny or small (CPU); nature, strided or impala (GPU); or file.py:Class."""
    hidden: int = 0
    """Features of the encoder (0 = its default, 128 to 512)."""
    width: float = 1.0
    """Channel multiplier of the residual encoders (impala, strided)."""
    global_pool: bool = False
    """Average-pool the channels of a residual encoder instead of flattening."""
    recurrent_type: RecurrentType = "none"
    """Memory between encoder and heads."""
    memory_size: int = 0
    """Features of the memory (0 = as many as the encoder)."""
    memory_length: int = 32
    """Steps a transformer remembers; older ones are dropped."""
    transformer_layers: int = 1
    """Attention blocks of the transformer."""
    transformer_heads: int = 4
    """Attention heads; must divide the memory's features."""
    channels_last: bool = True
    """Use the channels-last memory layout."""

    def __post_init__(self) -> None:
        if custom_code.is_reference(self.encoder):
            custom_code.parse(self.encoder)
        elif self.encoder not in ENCODERS:
            known = ", ".join(ENCODERS)
            raise ConfigError(
                f"Unknown encoder {self.encoder!r}: choose {known} or a class as file.py:Class."
            )
        require(self, "width", above=0)
        require(self, "memory_length", "transformer_layers", "transformer_heads", at_least=1)
        require(self, "hidden", "memory_size", at_least=0)
