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
    """A NES with a mapper-0 cartridge, at power-on; `region` is "ntsc" or "pal".

    `step` runs whole frames, from one vertical blank to the next. Buttons are bits 7..0: right left down up start
    select B A, as in nes-py and .fm2 movies. Memory views (`ram`, `wram`) are live and writable.
    """

    def __init__(self, rom: bytes, region: str = "ntsc") -> None: ...
    def step(
        self,
        buttons: int = 0,
        frames: int = 1,
        render: bool = True,
        *,
        buttons2: int = 0,
        skip_idle_loops: bool = True,
        translate: bool = True,
    ) -> None:
        """Run `frames` frames with the buttons held; `render` draws them. The shortcuts change only speed."""
    @property
    def region(self) -> str: ...
    @property
    def ram(self) -> _U8:
        """The 2 KB of work RAM at $0000."""
    @property
    def wram(self) -> _U8:
        """The cartridge's 8 KB of RAM at $6000."""
    @property
    def screen(self) -> _U8:
        """The last frame that was drawn, uint8 [240, 256, 3]."""
    @property
    def frame(self) -> int:
        """Frames completed since power-on."""
    @property
    def lagged(self) -> bool:
        """Whether the game did not read the controllers in the last frame."""
    @property
    def cycles(self) -> int:
        """CPU cycles since power-on."""
    @property
    def jammed(self) -> bool:
        """Whether the CPU met an instruction that stops it for good."""
    def peek(self, addr: int) -> int:
        """The byte at a CPU address, without the side effects of a read."""
    def save(self) -> bytes:
        """The console's whole state."""
    def load(self, blob: bytes) -> None:
        """Go back to a saved state of the same game."""
    def reset(self) -> None:
        """Press the reset button."""

class Packer:
    """Compresses frames without loss on several threads; one call at a time. A frame has `frame_size` bytes in rows of
    `width`."""

    def __init__(self, threads: int, frame_size: int, width: int) -> None: ...
    def pack(self, array: NDArray[np.uint8]) -> bytes:
        """The frames of a contiguous array, compressed."""
    def unpack(self, packed: bytes | memoryview, out: NDArray[np.uint8]) -> None:
        """Fill a contiguous array; ValueError if it is not as large as the packed one."""

class FramePacker:
    """Compresses the observations of a pool as its threads draw them, to the same bytes as a `Packer`."""

    def __init__(self, frames: int, frame_size: int, width: int) -> None: ...
    def packed(self) -> bytes:
        """Those of the last step or reset that was given this packer."""

class PoolSettings(TypedDict, total=False):
    """The settings of a `Pool`; checked, with their defaults, in native/pool/config.*."""

    environments: int
    threads: int
    frame_skip: int
    frame_skip_noise: int
    frame_stack: int
    height: int
    width: int
    top: int
    channels: str
    measured_palette: bool
    sticky: float
    noop_max: int
    random_start: float
    max_pool: bool
    show_buttons: bool
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
        packer: FramePacker | None = None,
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
        packer: FramePacker | None = None,
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

class ForeignEpisode:
    """The rules of the game for an episode that another emulator plays; `x` is the player's position."""

    def __init__(self, stood_only: bool) -> None: ...
    def seed(self, seed: int) -> None: ...
    def uniform(self) -> float: ...
    def below(self, n: int) -> int: ...
    def begin(self, ram: _U8, x: int, world: int, stage: int, stage_index: int) -> None: ...
    def look(self, ram: _U8, x: int) -> bool: ...
    def count_decision(self, step_limit: int, stall_limit: int) -> None: ...
    @property
    def terminated(self) -> bool: ...
    @property
    def truncated(self) -> bool: ...
    def report(self, ram: _U8, x: int, frames: int, out: _I32) -> None: ...

class Net:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class NetObjective:
    def __init__(self, **settings: Any) -> None: ...

class NetBatch:
    def __init__(self, **arrays: Any) -> None: ...

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
        targets: list[tuple[int, int, int]],
        actions: bytes,
        threads: int,
        owned: bool,
        start: NDArray[np.int64],
        info: NDArray[np.int64],
        reward: NDArray[np.float64],
        done: NDArray[np.bool_],
    ) -> None: ...
    def reset(self, mask: NDArray[np.bool_], observations: NDArray[np.uint8]) -> None: ...
    def frames(self) -> NDArray[np.uint8]: ...
    def buttons(self, actions: NDArray[np.int64]) -> bytes: ...
    def step(self, buttons: bytes, observations: NDArray[np.uint8]) -> None: ...
    def copy_ram(self, out: NDArray[np.uint8]) -> None: ...
