"""From observations to features: one function per architecture, all for any height and width."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from warpzone import custom_code
from warpzone.errors import ConfigError
from warpzone.model.config import ModelConfig
from warpzone.model.initialise import RELU_GAIN, orthogonal

DEFAULT_HIDDEN = {"tiny": 128, "small": 256, "nature": 512, "impala": 256, "strided": 512}


class FrameConv(nn.Conv2d):
    """A first convolution, over uint8 frames; the scaling to 0..1 is part of its weights.

    Tensor cores want many channels, and frames have few. Where the stride divides kernel and frame, a GPU gets
    each stride x stride patch as the channels of one pixel: the same sums with a smaller kernel.
    """

    memory_format = torch.contiguous_format

    def forward(self, obs: Tensor) -> Tensor:
        dtype = torch.get_default_dtype()
        if torch.is_autocast_enabled(obs.device.type):
            dtype = torch.get_autocast_dtype(obs.device.type)
        weight = self.weight * (1.0 / 255.0)
        stride, kernel = self.stride[0], self.kernel_size[0]
        divides = kernel % stride == 0 and not any(size % stride for size in obs.shape[2:])
        if obs.is_cuda and stride > 1 and divides and not self.padding[0]:
            return F.conv2d(_patches(obs, stride, dtype), _patch_weight(weight, stride), self.bias)
        obs = obs.to(dtype=dtype, memory_format=self.memory_format)
        return F.conv2d(obs, weight, self.bias, self.stride, self.padding)


def _patches(obs: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """[B, C, H, W] as [B, C * size * size, H / size, W / size], channels innermost, in one pass."""
    batch, channels, height, width = obs.shape
    rows, columns = height // size, width // size
    out = torch.empty(batch, rows, columns, channels, size, size, dtype=dtype, device=obs.device)
    out.copy_(obs.view(batch, channels, rows, size, columns, size).permute(0, 2, 4, 1, 3, 5))
    return out.view(batch, rows, columns, -1).permute(0, 3, 1, 2)


def _patch_weight(weight: Tensor, size: int) -> Tensor:
    """The kernel that sums over patches what `weight` sums over pixels."""
    out, channels, kernel, _ = weight.shape
    taps = kernel // size
    grouped = weight.reshape(out, channels, taps, size, taps, size).permute(0, 1, 3, 5, 2, 4)
    return grouped.reshape(out, -1, taps, taps).contiguous(memory_format=torch.channels_last)


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
    """A convolutional body and one linear layer: uint8 observations [B, C, H, W] to features [B, hidden]."""

    def __init__(self, config: ModelConfig, observation_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.hidden = config.hidden or DEFAULT_HIDDEN[config.encoder]
        self.body = _body(config, observation_shape[0])
        first = self.body[0]
        assert isinstance(first, FrameConv)
        first.memory_format = torch.channels_last if config.channels_last else torch.contiguous_format
        self.fc = orthogonal(nn.Linear(_features(self.body, observation_shape, config.encoder), self.hidden))

    def forward(self, obs: Tensor) -> Tensor:
        features: Tensor = torch.relu(self.fc(self.body(obs).flatten(1)))
        return features


class CustomEncoder(nn.Module):
    """A user's class: `Class(channels, height, width)` is a module from uint8 [B, C, H, W] to floats [B, features]."""

    def __init__(self, config: ModelConfig, observation_shape: tuple[int, int, int]) -> None:
        super().__init__()
        name = custom_code.parse(config.encoder).name
        with custom_code.blamed(f"The encoder {name}"):
            self.module = custom_code.load(config.encoder)(*observation_shape)
            if not isinstance(self.module, nn.Module):
                raise ConfigError(f"The encoder {name} is not a torch.nn.Module.")
            self.module.eval()
            with torch.no_grad():
                features = self.module(torch.zeros(2, *observation_shape, dtype=torch.uint8))
            self.module.train()
        if features.dim() != 2 or len(features) != 2 or not features.is_floating_point():
            raise ConfigError(
                f"The encoder {name} gave {features.dtype} of shape {list(features.shape)} for two observations: "
                "give floats [batch, features]."
            )
        self.hidden = features.shape[1]

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.module(frames)
        return features


def build_encoder(config: ModelConfig, observation_shape: tuple[int, int, int]) -> Encoder | CustomEncoder:
    kind = CustomEncoder if custom_code.is_reference(config.encoder) else Encoder
    return kind(config, observation_shape)


def _body(config: ModelConfig, channels: int) -> nn.Sequential:
    match config.encoder:
        case "tiny":
            return _two_convolutions(channels, 8, 16)
        case "small":
            return _two_convolutions(channels, 16, 32)
        case "nature":
            return nn.Sequential(
                orthogonal(FrameConv(channels, 32, 8, stride=4)),
                nn.ReLU(),
                orthogonal(nn.Conv2d(32, 64, 4, stride=2)),
                nn.ReLU(),
                orthogonal(nn.Conv2d(64, 64, 3)),
                nn.ReLU(),
            )
        case "impala":
            return _impala(channels, config.width, config.global_pool)
        case _:
            return _strided(channels, config.width, config.global_pool)


def _two_convolutions(channels: int, first: int, second: int) -> nn.Sequential:
    return nn.Sequential(
        orthogonal(FrameConv(channels, first, 4, stride=2)),
        nn.ReLU(),
        orthogonal(nn.Conv2d(first, second, 3, stride=2)),
        nn.ReLU(),
    )


def _impala(channels: int, width: float, global_pool: bool) -> nn.Sequential:
    """The residual net of IMPALA: three times convolution, 3x3/2 max pooling and two residual blocks."""
    layers: list[nn.Module] = []
    convolution: type[nn.Conv2d] = FrameConv
    gain = RELU_GAIN / 6**0.5
    for out in (_scaled(16, width), _scaled(32, width), _scaled(32, width)):
        layers += [
            orthogonal(convolution(channels, out, 3, padding=1), 1.0),
            nn.MaxPool2d(3, stride=2, padding=1),
            ResidualBlock(out, gain),
            ResidualBlock(out, gain),
        ]
        channels, convolution = out, nn.Conv2d
    return nn.Sequential(*layers, nn.ReLU(), *_pool(global_pool))


def _strided(channels: int, width: float, global_pool: bool) -> nn.Sequential:
    """A residual net for GPUs: 4x4 patches first, as large frames of few channels are slow."""
    wide, deep = _scaled(64, width), _scaled(128, width)
    gain = RELU_GAIN / 2.0
    return nn.Sequential(
        orthogonal(FrameConv(channels, wide, 4, stride=4), 1.0),
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
            return int(body(torch.zeros(1, *shape, dtype=torch.uint8)).numel())
    except RuntimeError as error:
        height, width = shape[1:]
        raise ConfigError(
            f"A {height}x{width} frame is too small for the {encoder} encoder; use a larger size or tiny."
        ) from error
