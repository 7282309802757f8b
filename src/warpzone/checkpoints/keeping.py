"""Which checkpoints a run keeps: `latest`, the best and numbered ones, saved when they are due."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from warpzone.checkpoints.format import Tree
from warpzone.checkpoints.policy import CheckpointPolicy
from warpzone.checkpoints.saving import prune, read_meta, save_checkpoint, step_name, step_number
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError
from warpzone.watch.durable import FILES, Files

FIRST_SAVE_S = 5.0
"""Seconds after which a new run saves `latest` for the first time: the live page can then show the agent."""


class CheckpointKeeper:
    """Saves `latest`, `step_*` and `best` of one run when they are due."""

    def __init__(
        self,
        folder: Path,
        policy: CheckpointPolicy,
        *,
        files: Files = FILES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self.policy = policy
        self._files = files
        self._clock = clock
        self._last_saved_s = clock()
        self._save_index = 0
        self._best: CheckpointMeta | None = None
        for path in folder.glob("*.pt"):
            with suppress(CheckpointError):
                meta = read_meta(path, verify=False)
                self._save_index = max(self._save_index, meta.save_index)
                if path.stem == "best":
                    self._best = read_meta(path)

    def due(self, global_update: int) -> bool:
        return self._step_due(global_update) or self._latest_due(global_update)

    def save_due(self, state: Callable[[], Tree], meta: CheckpointMeta) -> list[Path]:
        """Save what the policy asks for after this update. `state` is called only if something is."""
        step, latest = self._step_due(meta.global_update), self._latest_due(meta.global_update)
        if not (step or latest):
            return []
        return self._save(state(), meta, [step_name(meta.global_step)] * step + ["latest"])

    def save_latest(self, state: Tree, meta: CheckpointMeta) -> list[Path]:
        """Save `latest` now: at the end, on a stop or on an error."""
        return self._save(state, meta, ["latest"])

    def _save(self, state: Tree, meta: CheckpointMeta, names: list[str]) -> list[Path]:
        self._save_index += 1
        # Also counts if it fails: a full disk is not tried again at every update.
        self._last_saved_s = self._clock()
        meta = replace(meta, save_index=self._save_index, created_unix_s=time.time())
        is_best = self._is_best(meta)
        saved = [
            save_checkpoint(self.folder, name, state, meta, files=self._files)
            for name in names + ["best"] * is_best
        ]
        if is_best:
            self._best = meta
        for path in saved:
            if step_number(path) is not None:
                prune(self.folder, self.policy.keep, spare=path)
        self._last_saved_s = self._clock()
        return saved

    def is_best_evaluated(self, meta: CheckpointMeta) -> bool:
        """Whether `best` was evaluated on all of these stages, on episodes that are not easier."""
        best = self._best
        return (
            best is not None
            and bool(meta.clear_rate)
            and set(meta.clear_rate) <= set(best.fresh_clear_rate)
            and episodes_of(best) == episodes_of(meta)
        )

    def best_rates(self, meta: CheckpointMeta) -> dict[str, float]:
        """Clear rates of `best`; none if they are from easier episodes (before random starts, say), as those are not to
        be compared with."""
        return self._best.clear_rate if self._best and episodes_of(self._best) == episodes_of(meta) else {}

    @property
    def best_update(self) -> int:
        """The update of `best`; 0 without one."""
        return self._best.global_update if self._best else 0

    def _is_best(self, meta: CheckpointMeta) -> bool:
        """Over the same stages: one that `best` had too few episodes of counts 0 there. Of equals the later one.

        An evaluation on fresh episodes outranks a clear rate in training, which is the highest of many.
        """
        if self._best is not None and self.is_best_evaluated(meta):
            rates = [
                (meta.fresh_clear_rate.get(stage, 0.0), self._best.fresh_clear_rate[stage])
                for stage in meta.clear_rate
            ]
            return sum(now for now, _ in rates) >= sum(best for _, best in rates)
        if meta.fresh_clear_rate:
            return True
        known = self.best_rates(meta)
        best = sum(known.get(stage, 0.0) for stage in meta.clear_rate)
        return sum(meta.clear_rate.values()) >= max(best, 1e-9)

    def _step_due(self, update: int) -> bool:
        every = self.policy.step_every_updates
        return every > 0 and update > 0 and update % every == 0

    def _latest_due(self, update: int) -> bool:
        every, every_s = self.policy.latest_every_updates, self.policy.latest_every_s
        by_updates = every > 0 and update > 0 and update % every == 0
        waited_s = self._clock() - self._last_saved_s
        is_first = self._save_index == 0 and (every > 0 or every_s > 0) and waited_s >= FIRST_SAVE_S
        return by_updates or is_first or (every_s > 0 and waited_s >= every_s)


def episodes_of(meta: CheckpointMeta) -> list[Any]:
    """The settings that make episodes easier or harder; older files may lack some."""
    view = meta.config.get("view") or {}
    names = ("frame_skip_noise", "sticky", "noop_max", "random_start", "stall_limit", "step_limit")
    return [view.get(name) or 0 for name in names]
