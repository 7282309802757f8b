from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack

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
    def peek(self, addr: int) -> int: ...
    def save(self) -> bytes: ...
    def load(self, blob: bytes) -> None: ...
    def reset(self) -> None: ...

class PoolSettings(TypedDict, total=False):
    """The settings of a `Pool`; checked, with their defaults, in native/pool/config.*."""

    environments: int
    threads: int
    frame_skip: int
    frame_stack: int
    height: int
    width: int
    top: int
    channels: str
    measured_palette: bool
    sticky: float
    noop_max: int
    max_pool: bool
    ground_stood: bool
    stall_limit: int
    step_limit: int
    autoreset: int
    pal: bool
    lost_levels: bool
    pin: bool
    stages: list[tuple[int, int]]
    memories: list[bytes]
    levels: bool
    actions: list[int]

class Pool:
    def __init__(self, rom: bytes, **settings: Unpack[PoolSettings]) -> None: ...
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
    def add_stage(self, world: int, stage: int, memory: bytes = b"") -> int: ...
    def set_stage(self, which: int, world: int, stage: int, memory: bytes) -> None: ...
    def queue_start(self, index: int, snapshot: bytes) -> None: ...
    def copy_ram(self, out: _U8) -> None: ...
    def screen(self, index: int) -> _U8: ...
    def snapshot(self, index: int, frames: int) -> bytes: ...
    def restore(self, index: int, snapshot: bytes) -> None: ...
    def observe(self, index: int, out: _U8) -> None: ...

class Net:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class CompatEmulator:
    def __init__(self, rom: bytes, has_wram: bool) -> None: ...
    @property
    def screen(self) -> NDArray[np.uint8]: ...
    @property
    def ram(self) -> NDArray[np.uint8]: ...
    def controller(self, port: int) -> NDArray[np.uint8]: ...
    def reset(self) -> None: ...
    def step(self) -> None: ...
    def backup(self) -> None: ...
    def restore(self) -> None: ...
    def save(self) -> bytes: ...
    def load(self, blob: bytes) -> None: ...
    skip_idle_loops: bool
    translate: bool
    @property
    def skipped_cycles(self) -> int: ...
    time_last: int
    x_last: int
    def skip_start_screen(self, target: tuple[int, int, int]) -> None: ...
    def mark(self) -> None: ...
    def play(self, single: bool) -> tuple[float, bool, dict[str, Any]]: ...

class CompatVector:
    def __init__(
        self,
        rom: bytes,
        *,
        has_wram: bool,
        starts: list[tuple[int, int, int]],
        threads: int,
        observations: NDArray[np.uint8],
        info: NDArray[np.int64],
        reward: NDArray[np.float64],
        done: NDArray[np.bool_],
    ) -> None: ...
    def reset(self, mask: NDArray[np.bool_], starts: NDArray[np.int64]) -> None: ...
    def step(self, buttons: NDArray[np.uint8], mask: NDArray[np.bool_]) -> None: ...
    def copy_ram(self, out: NDArray[np.uint8]) -> None: ...
