"""From pictures to features: one function per architecture, all for any height and width."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from warpzone.errors import ConfigError
from warpzone.model.config import ModelConfig
from warpzone.model.initialise import RELU_GAIN, orthogonal

DEFAULT_HIDDEN = {"tiny": 128, "small": 256, "nature": 512, "impala": 256, "strided": 512}


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside the identity; a small `gain` starts deep stacks near the identity."""

    def __init__(self, channels: int, gain: float) -> None:
        super().__init__()
        self.first = orthogonal(nn.Conv2d(channels, channels, 3, padding=1))
        self.second = orthogonal(nn.Conv2d(channels, channels, 3, padding=1), gain)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.second(torch.relu(self.first(torch.relu(x))))
        return out


class Encoder(nn.Module):
    """A convolutional body and one linear layer: uint8 pictures [B, C, H, W] to features [B, hidden]."""

    def __init__(self, config: ModelConfig, observation_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.hidden = config.hidden or DEFAULT_HIDDEN[config.encoder]
        self.memory_format = torch.channels_last if config.channels_last else torch.contiguous_format
        self.body = _body(config, observation_shape[0])
        self.fc = orthogonal(nn.Linear(_features(self.body, observation_shape, config.encoder), self.hidden))

    def forward(self, pictures: Tensor) -> Tensor:
        dtype = torch.get_default_dtype()
        if torch.is_autocast_enabled(pictures.device.type):
            dtype = torch.get_autocast_dtype(pictures.device.type)
        x = pictures.to(dtype=dtype, memory_format=self.memory_format).mul_(1.0 / 255.0)
        features: Tensor = torch.relu(self.fc(self.body(x).flatten(1)))
        return features


def _body(config: ModelConfig, channels: int) -> nn.Sequential:
    match config.encoder:
        case "tiny":
            return _two_convolutions(channels, 8, 16)
        case "small":
            return _two_convolutions(channels, 16, 32)
        case "nature":
            return nn.Sequential(
                orthogonal(nn.Conv2d(channels, 32, 8, stride=4)),
                nn.ReLU(),
                orthogonal(nn.Conv2d(32, 64, 4, stride=2)),
                nn.ReLU(),
                orthogonal(nn.Conv2d(64, 64, 3)),
                nn.ReLU(),
            )
        case "impala":
            return _impala(channels, config.width, config.global_pool)
        case "strided":
            return _strided(channels, config.width, config.global_pool)


def _two_convolutions(channels: int, first: int, second: int) -> nn.Sequential:
    return nn.Sequential(
        orthogonal(nn.Conv2d(channels, first, 4, stride=2)),
        nn.ReLU(),
        orthogonal(nn.Conv2d(first, second, 3, stride=2)),
        nn.ReLU(),
    )


def _impala(channels: int, width: float, global_pool: bool) -> nn.Sequential:
    """The residual net of IMPALA: three times convolution, 3x3/2 max pooling and two residual blocks."""
    layers: list[nn.Module] = []
    gain = RELU_GAIN / 6**0.5
    for out in (_scaled(16, width), _scaled(32, width), _scaled(32, width)):
        layers += [
            orthogonal(nn.Conv2d(channels, out, 3, padding=1), 1.0),
            nn.MaxPool2d(3, stride=2, padding=1),
            ResidualBlock(out, gain),
            ResidualBlock(out, gain),
        ]
        channels = out
    return nn.Sequential(*layers, nn.ReLU(), *_pool(global_pool))


def _strided(channels: int, width: float, global_pool: bool) -> nn.Sequential:
    """A residual net for GPUs: 4x4 patches first, as large pictures of few channels are what is slow."""
    wide, deep = _scaled(64, width), _scaled(128, width)
    gain = RELU_GAIN / 2.0
    return nn.Sequential(
        orthogonal(nn.Conv2d(channels, wide, 4, stride=4), 1.0),
        ResidualBlock(wide, gain),
        ResidualBlock(wide, gain),
        nn.ReLU(),
        orthogonal(nn.Conv2d(wide, deep, 3, stride=2, padding=1)),
        ResidualBlock(deep, gain),
        ResidualBlock(deep, gain),
        nn.ReLU(),
        *_pool(global_pool),
    )


def _scaled(channels: int, width: float) -> int:
    return max(1, round(channels * width))


def _pool(global_pool: bool) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1)] if global_pool else []


def _features(body: nn.Module, shape: tuple[int, int, int], encoder: str) -> int:
    try:
        with torch.no_grad():
            return int(body(torch.zeros(1, *shape)).numel())
    except RuntimeError as error:
        height, width = shape[1:]
        raise ConfigError(
            f"A {height}x{width} picture is too small for the {encoder} encoder; use a larger size or tiny."
        ) from error
