"""The presets: defaults of a training for the machine it runs on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from warpzone.collect.config import CollectConfig
from warpzone.envs.config import ViewConfig
from warpzone.envs.rewards import RewardConfig
from warpzone.envs.stages import GAME
from warpzone.errors import ConfigError
from warpzone.learn.config import LearnConfig
from warpzone.model.config import ModelConfig
from warpzone.run.config import Preset, RunConfig, TrainConfig
from warpzone.starts.reverse_curriculum import AUTO, TrailConfig

_RUN = RunConfig(until_clear_rate=0.9, time_limit=30.0)
_VIEW = ViewConfig(observation="red", crop_hud=True, noop_max=30, ground="stood", action_type="simple")
_LEARN = LearnConfig(
    gamma=0.97, learning_rate=1e-3, lr_final_fraction=0.1, epochs=4, gae_lambda=0.95, normalise_rewards=False
)
_TRAIL = TrailConfig(trails=AUTO)

CPU = TrainConfig(
    run=_RUN,
    view=replace(_VIEW, size=(26, 32), stall_limit=120),
    reward=RewardConfig(reward_flag=300.0, reward_death=25.0),
    model=ModelConfig(encoder="tiny", hidden=128),
    learn=replace(
        _LEARN, anneal_steps=6_000_000, anneal_by_success=True, minibatch_size=256, max_grad_norm=5.0
    ),
    collect=CollectConfig(num_envs=64, rollout_steps=32),
    trail=_TRAIL,
)
"""Two cores and a tiny network at low resolution: one recipe for every stage on a laptop.

It looks thirty decisions ahead: ten are as good on 1-1, but never get past the trees of 1-3. Exploration ends by
success, as stages take from 0.7 to several million decisions. A stage without progress gets a trail. Evidence:
docs/research/2026-11-16-one-recipe.md."""

GPU = TrainConfig(
    run=_RUN,
    view=replace(_VIEW, size=(84, 84), stall_limit=300),
    model=ModelConfig(encoder="nature"),
    learn=replace(_LEARN, algo="appo", anneal_steps=6_553_600, minibatch_size=4096),
    collect=CollectConfig(num_envs=1024, rollout_steps=32, overlap_collect=True),
    trail=_TRAIL,
)
"""One data-centre GPU and its cores: a Nature network learns while the next rollout is collected, one update behind,
which V-trace corrects."""

PRESETS = {"cpu": CPU, "gpu": GPU}
NEEDS_DOWN = {"8-4", GAME}
"""Stages that can only be finished through pipes."""
CASTLES = {f"{world}-4" for world in range(1, 9)}
MAZES = {"4-4", "7-4", "8-4"}


def preset(name: Preset) -> TrainConfig:
    """The defaults for a machine."""
    if name == "auto":
        name = "gpu" if _has_cuda() else "cpu"
    if name not in PRESETS:
        raise ConfigError(f"Unknown preset {name!r}: choose auto, cpu or gpu.")
    return PRESETS[name].changed("run", preset=name)


def _has_cuda() -> bool:
    """Whether torch can use a GPU; torch, which takes seconds to load, is asked only where there may be one."""
    devices = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))
    if sys.platform == "linux" and not any(device.exists() for device in devices):
        return False
    import torch

    return torch.cuda.is_available()


Needed = dict[str, tuple[str, object]]
"""Setting -> its group and value."""

LEVELS: Needed = {
    "action_type": ("view", "complex"),
    "stall_limit": ("view", 120),
    "reward_death": ("reward", 10.0),
    "reward_flag": ("reward", 300.0),
    "minibatch_size": ("learn", 2048),
    "max_grad_norm": ("learn", 5.0),
    "anneal_steps": ("learn", 60_000_000),
}
"""What generated levels are learned with on a GPU: docs/research/2026-11-18-unseen-levels.md."""
LEVELS_ENCODER: Needed = {
    "encoder": ("model", "strided"),
    "global_pool": ("model", True),
    "learning_rate": ("learn", 5e-4),
    "epochs": ("learn", 2),
}
"""A residual network learned more from as many decisions than the Nature network, and in the same time."""
LEVELS_NOISE: Needed = {"double_buffer": ("collect", True), "noisy_sticky": ("collect", 0.25)}


def suited_to_stages(config: TrainConfig, is_given: Callable[[str], bool]) -> TrainConfig:
    """The preset with what its stages need, but for what the user has given: the down button where pipes are on the
    way, a trail at once in castles, so that Bowser is practised (docs/research/2026-11-18-hard-stages.md), more
    foresight in mazes (docs/research/2026-11-16-mazes.md), and on a GPU a recipe of their own for generated levels."""
    stages, needed = set(config.stage.names()), Needed()
    if stages & NEEDS_DOWN:
        needed["action_type"] = "view", "complex"
    if stages <= CASTLES:
        needed["trail_patience"] = "trail", 0
    if stages <= MAZES:
        needed["gamma"] = "learn", 0.985
    if config.stage.levels and config.run.preset == "gpu":
        needed |= LEVELS
        if not is_given("encoder"):
            needed |= LEVELS_ENCODER
        if not is_given("double_buffer") and config.collect.num_envs % 2 == 0:
            needed |= LEVELS_NOISE
    for name, (group, value) in needed.items():
        if not is_given(name):
            config = config.changed(group, **{name: value})
    return config
