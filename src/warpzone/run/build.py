"""The parts of a run, put together from its configuration."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.agents.agent import make_policy
from warpzone.collect.collector import Collector
from warpzone.collect.interfaces import Environments
from warpzone.collect.make import make_collector
from warpzone.collect.overlap import OverlappedCollector
from warpzone.engine.rom import rom
from warpzone.envs.config import ViewConfig, cores
from warpzone.envs.level_pool import TRAINING_SEED, LevelPoolEnv, LevelSource, parse_count
from warpzone.envs.make import make_envs
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.envs.rewards import RewardConfig
from warpzone.envs.vector import MarioVectorEnv
from warpzone.learn.distillation import Teachers
from warpzone.learn.learner import Learner
from warpzone.learn.native import NativeLearner, NativePolicy
from warpzone.learn.ranks import ALONE, Ranks
from warpzone.run.config import TrainConfig

MakeEnvironments = Callable[[TrainConfig, torch.device, Callable[[str], None]], Sequence[Environments]]
"""Makes the environments of a run: one vector, or one for each group that takes turns."""


@dataclass
class Components:
    """What learns and what it learns from."""

    envs: Sequence[Environments]
    learner: Learner
    collector: Collector | OverlappedCollector
    device: torch.device
    threads: int

    def set_stage_weights(self, weights: NDArray[np.float64]) -> None:
        """How often each stage is drawn for the episodes that begin from now on; on the thread that collects."""
        for envs in self.envs:
            envs.set_stage_weights(weights.tolist())

    def close(self) -> None:
        """Stop every thread."""
        self.collector.close()
        self.learner.close()
        for envs in self.envs:
            envs.close()


def seed_everything(seed: int, deterministic: bool) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - libraries draw from the global stream
    torch.manual_seed(seed)
    if deterministic:
        torch.use_deterministic_algorithms(True)


def rom_digest(config: TrainConfig) -> str:
    return hashlib.sha256(rom(config.stage.rom or None)).hexdigest()


def build_envs(
    config: TrainConfig, device: torch.device, say: Callable[[str], None]
) -> Sequence[Environments]:
    """The environments a run learns from, in this process."""
    views, reward = views_and_reward(config)
    groups = len(views)
    each, stages, rom_path = config.collect.num_envs // groups, config.stage.names(), config.stage.rom or None
    seeds = [config.run.seed * groups + group for group in range(groups)]
    if config.backend.backend == "nes-py":
        return [
            BackendVectorEnv(
                each,
                stages,
                view=replace(view, frame_stack=1),
                backend=config.backend,
                reward=reward,
                seed=seed,
                rom=rom_path,
                say=say,
            )
            for seed, view in zip(seeds, views, strict=True)
        ]
    shared: Any = {
        "threads": emulation_threads(config), "frame_stack": 1, "autoreset_mode": "same_step", "reward": reward,
        "rom": rom_path, "empty": pinned if device.type == "cuda" else np.empty,
    }  # fmt: skip
    envs: list[MarioVectorEnv] = []
    for group, (seed, view) in enumerate(zip(seeds, views, strict=True)):
        if config.stage.levels:
            # Without end, each group has levels of its own.
            count = parse_count(config.stage.levels)
            first = TRAINING_SEED if count else TRAINING_SEED + (group << 36)
            source = LevelSource(count, config.stage.difficulty, first)
            options = {**asdict(view), **shared, "replay": config.stage.level_replay}
            envs.append(LevelPoolEnv(each, source, stages[:-1], seed=seed, **options))
        else:
            envs.append(make_envs(view, each, stages, seed=seed, **shared))
    took_s = sum(part.construction_s for part in envs)
    n = config.collect.num_envs
    say(f"[env] constructing env {n}/{n} ({1e3 * took_s:.0f} ms, {envs[0].threads} threads, native)")
    return [*envs]


def views_and_reward(config: TrainConfig) -> tuple[list[ViewConfig], RewardConfig]:
    """The view of each group of environments, and how they are rewarded. The second half of them may be noisy."""
    groups, noisy, reward = config.collect.groups, config.collect.noisy_sticky, config.reward
    noisy_view = replace(config.view, sticky=noisy) if noisy else config.view
    views = [noisy_view if group >= groups / 2 else config.view for group in range(groups)]
    # Each group anneals by its own decisions.
    anneal_steps = -(-reward.reward_scale_anneal_steps // groups)
    return views, replace(reward, reward_scale_anneal_steps=anneal_steps)


def pinned(shape: tuple[int, ...], dtype: Any) -> NDArray[np.uint8]:
    """Memory that a GPU reads by itself, so that frames need no extra copy on the way."""
    return torch.empty(shape, dtype=torch.uint8, pin_memory=True).numpy()


def emulation_threads(config: TrainConfig) -> int:
    """Where the caller works while consoles run, it needs a core to itself: sharing one holds everybody up."""
    if config.stage.env_threads:
        return config.stage.env_threads
    beside = config.collect.overlap_collect or config.collect.double_buffer
    share = max(1, cores() // config.scale.gpus)
    return share - 1 if beside and share > 2 else share


@dataclass(frozen=True)
class Placement:
    """Where the parts of a run are: by default all of them in this process."""

    make_envs: MakeEnvironments = build_envs
    ranks: Ranks = ALONE
    """The learners that learn together, of which this process is one."""


def learning_threads(config: TrainConfig, device: torch.device) -> int:
    """Emulation and learning take turns on a CPU, so each may have all cores. Beside a GPU torch has little to do on
    them, and threads that wait for it take the cores from the consoles."""
    return config.run.torch_threads or (max(1, cores() // config.scale.gpus) if device.type == "cpu" else 1)


def build_components(
    config: TrainConfig,
    device: torch.device,
    say: Callable[[str], None],
    teachers: Teachers | None = None,
    placement: Placement | None = None,
) -> Components:
    """Environments, learner and collector. Nothing runs yet: call `collector.start`."""
    placement = placement or Placement()
    ranks, total_updates = placement.ranks, config.planned_updates()
    config = config.of_rank(ranks.rank, ranks.size)
    seed = config.run.seed
    seed_everything(seed, config.run.deterministic)
    threads = learning_threads(config, device)
    torch.set_num_threads(threads)
    envs = placement.make_envs(config, device, say)
    # The native kernels know no other losses than their own, and no other learners.
    extra = config.replay.per or teachers or config.learn.weight_decay or config.learn.augment_coef
    kind = "torch" if extra or ranks.size > 1 else config.run.learner
    policy = make_policy(config.model, config.view, config.value_heads(), device, kind, threads)
    shared: Any = {
        "adaptive": config.adaptive,
        "total_updates": total_updates,
        "decisions_per_update": config.decisions_per_update * ranks.size,
        "device": device,
        "seed": seed,
    }
    if isinstance(policy, NativePolicy):
        learner: Learner = NativeLearner(policy, config.learn, **shared)
    else:
        learner = Learner(
            policy, config.learn, replay=config.replay, teachers=teachers, ranks=ranks, **shared
        )
    collector = make_collector(
        config.collect, envs, policy, learner.policy_snapshot, stack=config.view.frame_stack, device=device, seed=seed
    )  # fmt: skip
    return Components(envs, learner, collector, device, threads)
