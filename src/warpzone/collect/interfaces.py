"""What a collector requires of environments, actors and listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.envs.rewards import RewardShaper
from warpzone.model.memory import State
from warpzone.model.snapshot import Snapshot

Info = Mapping[str, Any]
StepResult = tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]
OnEpisodes = Callable[[Sequence[dict[str, Any]]], None]
OnStep = Callable[[slice, Info], None]


class Environments(Protocol):
    """A vector of environments that restart within the step that ends an episode (SAME_STEP).

    Observations are single frames, uint8 [N, C, H, W]. `info` holds arrays [N] that describe the observation
    given; where an episode ended, `info["final_obs"]` and the arrays of `info["final_info"]` describe its end.
    `info["stage_index"]` numbers the stages of the run. Arrays stay unchanged while they are referenced: a step
    is recorded during the next one. Where the process that ran an environment was lost, its episode is truncated and
    `info["worker_lost"]` is true.

    They run in this process, in workers or on other machines; nobody who uses them asks which.
    """

    @property
    def num_envs(self) -> int: ...

    @property
    def has_snapshots(self) -> bool:
        """Whether episodes can be saved, and begin from a snapshot."""

    @property
    def rewards(self) -> RewardShaper:
        """Computes the rewards; its settings may be changed between steps."""

    def reset(self) -> tuple[NDArray[np.uint8], Info]: ...

    def send(self, actions: NDArray[np.int64], /) -> None: ...

    def recv(self) -> StepResult: ...

    def set_stage_weights(self, weights: Sequence[float], /) -> None:
        """How often each stage is sampled for the episodes that begin from now on; during a step, from the next."""

    def queue_start(self, index: int, blob: bytes, /) -> None:
        """Begin the next episode of an environment from a snapshot; likewise."""

    def state_dict(self) -> dict[str, Any]:
        """The episodes under way and what the next rewards are computed from. Not during a step."""

    def load_state_dict(self, state: dict[str, Any], /) -> None: ...

    def metrics(self) -> Mapping[str, Any]:
        """Fields of the metrics that these environments add, since the last call."""

    def close(self) -> None: ...


class Actor(Protocol):
    """A policy as far as acting goes."""

    def initial_state(self, n: int, device: torch.device | str) -> State: ...

    def act(
        self, obs: Tensor, state: State, starts: Tensor, *, stage: Tensor | None = None
    ) -> tuple[Tensor, Tensor, State]: ...

    def install(self, snapshot: Snapshot) -> None: ...
