from typing import Any

import numpy as np
from numpy.typing import NDArray

FIELDS: list[str]
PALETTE: list[tuple[int, int, int]]

def shape_rewards(
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    fresh: NDArray[np.bool_],
    signed_distance: bool,
    cap: float,
    clip: float,
    worth: list[float],
    terms: NDArray[np.float32],
    total: NDArray[np.float32],
    dx: NDArray[np.int32],
) -> None: ...

_U8 = NDArray[np.uint8]
_I32 = NDArray[np.int32]
_Bool = NDArray[np.bool_]

class Machine:
    def __init__(self, rom: bytes, pal: bool) -> None: ...
    def step(
        self, buttons: int, frames: int, render: bool, buttons2: int, skip_idle_loops: bool, translate: bool
    ) -> None: ...
    @property
    def ram(self) -> _U8: ...
    @property
    def wram(self) -> _U8: ...
    @property
    def screen(self) -> _U8: ...
    @property
    def frame(self) -> int: ...
    @property
    def lagged(self) -> bool: ...
    @property
    def cycles(self) -> int: ...
    @property
    def jammed(self) -> bool: ...
    @property
    def pc(self) -> int: ...
    def peek(self, addr: int) -> int: ...
    def save(self) -> bytes: ...
    def load(self, blob: bytes) -> None: ...
    def reset(self) -> None: ...

class Pool:
    def __init__(
        self,
        rom: bytes,
        *,
        environments: int,
        threads: int,
        frame_skip: int,
        frame_stack: int,
        height: int,
        width: int,
        top: int,
        channels: str,
        measured_palette: bool,
        sticky: float,
        noop_max: int,
        max_pool: bool,
        ground_stood: bool,
        stall_limit: int,
        step_limit: int,
        autoreset: int,
        pal: bool,
        lost_levels: bool,
        pin: bool,
        stages: list[tuple[int, int]],
        actions: list[int],
    ) -> None: ...
    def reset(
        self,
        mask: _Bool | None,
        seeds: NDArray[np.uint64] | None,
        snapshot: bytes | None,
        observations: _U8,
        telemetry: _I32,
        terminated: _Bool,
        truncated: _Bool,
        final_observations: _U8,
        final_telemetry: _I32,
    ) -> None: ...
    def send(
        self,
        actions: NDArray[np.int64],
        observations: _U8,
        telemetry: _I32,
        terminated: _Bool,
        truncated: _Bool,
        final_observations: _U8,
        final_telemetry: _I32,
    ) -> None: ...
    def step(
        self,
        actions: NDArray[np.int64],
        observations: _U8,
        telemetry: _I32,
        terminated: _Bool,
        truncated: _Bool,
        final_observations: _U8,
        final_telemetry: _I32,
    ) -> None: ...
    def receive(self) -> None: ...
    @property
    def pending(self) -> bool: ...
    def set_stage_weights(self, weights: list[float]) -> None: ...
    def add_stage(self, world: int, stage: int) -> int: ...
    def queue_start(self, index: int, snapshot: bytes) -> None: ...
    def copy_ram(self, out: _U8) -> None: ...
    def screen(self, index: int) -> _U8: ...
    def snapshot(self, index: int, frames: int) -> bytes: ...
    def restore(self, index: int, snapshot: bytes) -> None: ...
    def observe(self, index: int, out: _U8) -> None: ...

class Net:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
