"""Acting by CUDA graph: one launch for a whole forward pass, so that acting does not wait for the host."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from warpzone.model.memory import State
from warpzone.model.policy import Policy
from warpzone.model.snapshot import Snapshot


@dataclass(frozen=True)
class Recording:
    """A recorded forward pass and the memory it reads and writes."""

    graph: torch.cuda.CUDAGraph
    obs: Tensor
    stage: Tensor
    logits: Tensor
    values: Tensor


class GraphedActor:
    """An Actor around a policy without memory; batches of the given sizes are recorded at first sight.

    What `act` gives is overwritten by the next call with as many environments.
    """

    def __init__(self, policy: Policy, sizes: set[int]) -> None:
        self.policy = policy
        self.sizes = sizes
        self.recordings: dict[int, Recording] = {}

    def initial_state(self, n: int, device: torch.device | str) -> State:
        return self.policy.initial_state(n, device)

    def install(self, snapshot: Snapshot) -> None:
        self.policy.install(snapshot)

    def act(
        self, obs: Tensor, state: State, starts: Tensor, *, stage: Tensor | None = None
    ) -> tuple[Tensor, Tensor, State]:
        if len(obs) not in self.sizes or stage is None:
            return self.policy.act(obs, state, starts, stage=stage)
        recording = self.recordings.get(len(obs))
        if recording is None:
            recording = self.recordings[len(obs)] = self._record(obs, stage)
        recording.obs.copy_(obs)
        recording.stage.copy_(stage)
        recording.graph.replay()
        return recording.logits, recording.values, state

    def _record(self, obs: Tensor, stage: Tensor) -> Recording:
        obs, stage = obs.clone(), stage.clone()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # Libraries choose algorithms and allocate workspaces on first use, which must not be recorded.
            for _ in range(3):
                self.policy.act(obs, stage=stage)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            logits, values, _ = self.policy.act(obs, stage=stage)
        return Recording(graph, obs, stage, logits, values)
