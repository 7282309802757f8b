"""Prioritised replay of past rollouts: single decisions, or whole sequences for a policy with memory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import psutil
import torch
from torch import Tensor

from warpzone.errors import CheckpointError
from warpzone.learn.config import ReplayConfig
from warpzone.learn.minibatch import Batch
from warpzone.learn.priorities import PrefixSums, Priorities, SumTree
from warpzone.learn.random_state import restore_stream
from warpzone.learn.rollout import Rollout

SMALLEST_PRIORITY = 1e-3
QUANTILES = {"mean": None, "p50": 0.5, "p90": 0.9, "p99": 0.99}


class Replayed(NamedTuple):
    """A batch sampled from the replay, and what is needed to write its new priorities back."""

    batch: Batch
    items: Tensor
    stored_at: Tensor
    """Which push each item came from: one that has been overwritten since is left alone."""


class Drawn(NamedTuple):
    """The batches of one update."""

    batches: list[Replayed]
    unique: Tensor
    """Share of distinct items."""
    took_ms: float


class PrioritisedReplay:
    """A ring of rollouts. Each frame of a rollout is stored once, with the `stack - 1` before the first.

    What is sampled is an item: a decision, or with `recurrent` one environment's whole rollout with the memory
    it began with. All sizes reported are in decisions.
    """

    def __init__(
        self,
        config: ReplayConfig,
        example: Rollout,
        *,
        recurrent: bool = False,
        device: torch.device | str = "cpu",
        seed: int = 0,
    ) -> None:
        self.config = config
        self.recurrent = recurrent
        self.device = torch.device(device)
        self.home = self.device if config.per_gpu_sample else torch.device("cpu")
        self.steps, self.num_envs, self.stack = example.steps, example.num_envs, example.stack
        per_slot = self.steps * self.num_envs
        fitting = decisions_that_fit(_bytes(example) / per_slot, self.home, config.per_memory_fraction)
        self.slots = max(1, min(config.per_capacity, fitting) // per_slot)
        self.capacity = self.slots * per_slot
        self.kept = _allocate(example, self.slots, self.home)
        self.items_per_slot = self.num_envs if recurrent else per_slot
        items = self.slots * self.items_per_slot
        on_device = config.per_gpu_sample
        self.priorities: Priorities = PrefixSums(items, self.home) if on_device else SumTree(items)
        self.stored_at = torch.full((self.slots,), -1, dtype=torch.int64, device=self.home)
        self.generator = torch.Generator(self.home).manual_seed(seed)
        self.pushes = self.draws = 0
        self.beta = config.per_beta
        self.sample_time_ms: float | None = None
        self.last_unique, self.sum_unique = torch.zeros(2, device=self.home).unbind()
        self._executor = ThreadPoolExecutor(1, "replay") if config.per_prefetch else None
        self._prefetched: Future[Drawn] | None = None
        self._before_prefetch: Tensor | None = None

    @property
    def size(self) -> int:
        return min(self.pushes, self.slots) * self.steps * self.num_envs

    def push(self, rollout: Rollout, returns: Tensor, errors: Tensor) -> None:
        """Keep a rollout with its value targets; `errors` [T, N] become its first priorities."""
        # A batch being prefetched may be read from the slot that is overwritten now.
        self._await_prefetch()
        slot = self.pushes % self.slots
        for name, source in _columns(rollout, returns, self.stack).items():
            self.kept[name][slot].copy_(source)
        for i, memory in enumerate(rollout.state0):
            self.kept[f"state{i}"][slot].copy_(memory)
        self.stored_at[slot] = self.pushes
        first = slot * self.items_per_slot
        index = torch.arange(first, first + self.items_per_slot, device=self.home)
        self.priorities.set(index, self._weight(errors.to(self.home)))
        self.pushes += 1

    def sample(self) -> list[Replayed]:
        """`per_batches` batches on the learner's device; the prefetched ones, if there are any."""
        drawn = self._draw() if self._prefetched is None else self._prefetched.result()
        self._prefetched = None
        self.last_unique, self.sample_time_ms = drawn.unique, drawn.took_ms
        self.sum_unique = self.sum_unique + drawn.unique
        self.draws += 1
        return drawn.batches

    def prefetch(self) -> None:
        """Begin, in a thread, to sample what the next `sample` returns. Until then only `push` waits for it."""
        if self._executor is not None and self._prefetched is None:
            self._before_prefetch = self.generator.get_state()
            self._prefetched = self._executor.submit(self._draw)

    def update_priorities(self, replayed: Replayed, errors: Tensor) -> None:
        """New errors, shaped like the batch, for items that have not been overwritten since."""
        index = replayed.items
        weight = self._weight(errors.to(self.home))
        current = self.stored_at[index // self.items_per_slot] == replayed.stored_at
        self.priorities.set(index, torch.where(current, weight, self.priorities.leaves[index]))

    def anneal(self, update: int) -> None:
        """Set beta, the exponent of the importance weights, for `update`."""
        fraction = min(1.0, update / self.config.per_beta_updates)
        self.beta = self.config.per_beta + fraction * (self.config.per_beta_final - self.config.per_beta)

    def stats(self) -> dict[str, float]:
        """Numbers for the metrics, by their names there; the time only after a `sample`."""
        leaves = self.priorities.leaves[: min(self.pushes, self.slots) * self.items_per_slot].double()
        priorities = leaves ** (1 / self.config.per_alpha) if self.config.per_alpha else leaves
        # Quantiles of a hundred thousand evenly spaced items are exact enough and never slow.
        priorities = priorities[:: 1 + len(priorities) // 100_000]
        found = {}
        for name, quantile in QUANTILES.items():
            value = priorities.mean() if quantile is None else priorities.quantile(quantile)
            found[f"replay_priority_{name}"] = float(value) if len(priorities) else 0.0
        stats = {
            "replay_size": float(self.size),
            "replay_capacity": float(self.capacity),
            "replay_fill_rate": self.size / self.capacity,
            "replay_last_unique_ratio": float(self.last_unique),
            "replay_avg_unique_ratio": float(self.sum_unique) / max(1, self.draws),
            "replay_push_total": float(self.pushes * self.steps * self.num_envs),
            **found,
        }
        if self.sample_time_ms is not None:
            stats["replay_sample_time_ms"] = self.sample_time_ms
            self.sample_time_ms = None
        return stats

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    def _weight(self, errors: Tensor) -> Tensor:
        """Error to the power alpha; a sequence counts by the mean of its errors."""
        size = errors.abs().double()
        size = size.mean(0) if self.recurrent else size
        return (size.flatten() + SMALLEST_PRIORITY) ** self.config.per_alpha

    def _draw(self) -> Drawn:
        started = time.perf_counter()
        config = self.config
        per_batch = max(1, config.per_batch_size // self.steps) if self.recurrent else config.per_batch_size
        index, probability = self.priorities.draw(per_batch * config.per_batches, self.generator)
        ordered = index.sort().values
        unique = ((ordered[1:] != ordered[:-1]).sum() + 1) / len(ordered)
        items = min(self.pushes, self.slots) * self.items_per_slot
        weight = (items * probability).pow(-self.beta).float()
        weight = weight / weight.max()
        # Items are sampled in order of their place; each batch gets some of everywhere.
        picks = [slice(i, None, config.per_batches) for i in range(config.per_batches)]
        batches = [self._gather(index[pick], weight[pick]) for pick in picks]
        return Drawn(batches, unique, 1000 * (time.perf_counter() - started))

    def _gather(self, index: Tensor, weight: Tensor) -> Replayed:
        slot = index // self.items_per_slot
        within = index % self.items_per_slot
        if self.recurrent:
            time_index = torch.arange(self.steps, device=self.home)[:, None].expand(-1, len(index))
            at = slot.expand_as(time_index), time_index, within.expand_as(time_index)
        else:
            at = slot, within // self.num_envs, within % self.num_envs
        kept = self.kept
        age = kept["age"][at].to(torch.int64)
        floats = torch.zeros(4, *at[0].shape, device=self.home)
        floats[0], floats[2] = kept["logp"][at], kept["returns"][at]
        integers = torch.stack([kept["actions"][at], kept["stage"][at]]).to(torch.int64)
        batch = Batch(
            obs=self._stacked(*at, age),
            floats=floats,
            integers=integers,
            starts=age == 0 if self.recurrent else None,
            state=tuple(kept[name][slot, within] for name in sorted(kept) if name.startswith("state")),
            weight=weight,
        )
        return Replayed(_to(batch, self.device), index, self.stored_at[slot])

    def _stacked(self, slot: Tensor, step: Tensor, env: Tensor, age: Tensor) -> Tensor:
        frames = self.kept["frames"]
        back = torch.arange(self.stack - 1, -1, -1, device=self.home)
        depth = (self.stack - 1 + step).unsqueeze(-1) - torch.minimum(back, age.unsqueeze(-1))
        rows = (slot.unsqueeze(-1) * frames.shape[1] + depth) * self.num_envs + env.unsqueeze(-1)
        stacked = frames.flatten(0, 2).index_select(0, rows.flatten())
        return stacked.view(*slot.shape, self.stack * frames.shape[3], *frames.shape[4:])

    def _await_prefetch(self) -> None:
        if self._prefetched is not None:
            self._prefetched.result()

    def state_dict(self) -> dict[str, Any]:
        prefetched = self._prefetched is not None
        return {
            "kept": self.kept,
            "leaves": self.priorities.leaves,
            "stored_at": self.stored_at,
            "generator": self._before_prefetch if prefetched else self.generator.get_state(),
            "prefetched": prefetched,
            "pushes": self.pushes,
            "draws": self.draws,
            "sum_unique": self.sum_unique,
            "beta": self.beta,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["stored_at"]) != self.slots:
            raise CheckpointError(
                f"The saved replay holds {len(state['stored_at'])} rollouts and this one {self.slots}; set "
                "per_capacity to what it was, or resume without the replay."
            )
        self._await_prefetch()
        self._prefetched = None
        for name, kept in self.kept.items():
            kept.copy_(state["kept"][name])
        leaves = state["leaves"].to(self.home)
        self.priorities.set(torch.arange(len(leaves), device=self.home), leaves)
        self.stored_at.copy_(state["stored_at"])
        restore_stream(self.generator, state["generator"])
        self.pushes, self.draws, self.beta = state["pushes"], state["draws"], state["beta"]
        self.sum_unique = state["sum_unique"].to(self.home)
        if state["prefetched"]:
            self.prefetch()


def decisions_that_fit(bytes_per_decision: float, device: torch.device, fraction: float) -> int:
    """How many decisions fit into a fraction of the memory that is free now."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
    else:
        free = psutil.virtual_memory().available
    return int(fraction * free / bytes_per_decision)


def format_replay_stat(stats: Mapping[str, float]) -> str:
    """The log line of a replay's state."""
    fill, unique = stats["replay_fill_rate"], stats["replay_last_unique_ratio"]
    average = stats["replay_avg_unique_ratio"]
    return f"[replay][stat] fill={fill:.1%} unique={unique:.1%} avg_unique={average:.1%}"


def _columns(rollout: Rollout, returns: Tensor, stack: int) -> dict[str, Tensor]:
    return {
        "frames": rollout.frames[:-1],
        "age": rollout.age[:-1].clamp(max=max(1, stack - 1)),
        "actions": rollout.actions,
        "stage": rollout.stage,
        "logp": rollout.logp,
        "returns": returns,
    }


def _allocate(example: Rollout, slots: int, home: torch.device) -> dict[str, Tensor]:
    small = {"frames": torch.uint8, "age": torch.uint8, "actions": torch.uint8, "stage": torch.uint8}
    columns = _columns(example, example.values, example.stack)
    other = torch.float32 if os.environ.get("MARIO_PER_FP16_SCALARS") == "0" else torch.float16
    kept = {
        name: torch.zeros(slots, *source.shape, dtype=small.get(name, other), device=home)
        for name, source in columns.items()
    }
    for i, memory in enumerate(example.state0):
        kept[f"state{i}"] = torch.zeros(slots, *memory.shape, dtype=memory.dtype, device=home)
    return kept


def _bytes(example: Rollout) -> int:
    kept = _allocate(example, 1, torch.device("meta"))
    return sum(tensor.numel() * tensor.element_size() for tensor in kept.values())


def _to(batch: Batch, device: torch.device) -> Batch:
    if batch.obs.device.type == device.type:
        return batch

    def move(tensor: Tensor) -> Tensor:
        return tensor.pin_memory().to(device, non_blocking=True)

    moved = {name: move(value) for name, value in batch._asdict().items() if isinstance(value, Tensor)}
    return batch._replace(**moved, state=tuple(move(part) for part in batch.state))
