"""The columns of a rollout and the vectors of environments that fill them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Startable(Protocol):
    """What the environments must provide."""

    @property
    def num_envs(self) -> int: ...

    def queue_start(self, index: int, blob: bytes) -> None: ...


class Columns:
    """Queues starts by column."""

    def __init__(self) -> None:
        self._envs: dict[int, Startable] = {}

    def attach(self, envs: Sequence[Startable]) -> None:
        """Assign columns to vectors: those of each vector follow those of the previous one."""
        first = np.cumsum([0, *(part.num_envs for part in envs)]).tolist()
        self._envs = dict(zip(first, envs, strict=False))

    def queue_start(self, column: int, blob: bytes) -> None:
        """Begin the next episode of a column from a snapshot."""
        first = max(begin for begin in self._envs if begin <= column)
        self._envs[first].queue_start(column - first, blob)
