"""Settings of the environments, which are also the flags of the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from warpzone.envs.actions import action_buttons, action_names
from warpzone.envs.stages import ALL_STAGES, parse_stages, stage_span
from warpzone.errors import ConfigError, require

if TYPE_CHECKING:
    from warpzone.engine._native import PoolSettings

OBSERVATIONS = {"gray": "y", "grey": "y", "red": "r", "rgb": "rgb"}
"""Observation kinds, and the channels the engine makes for them."""
PALETTES = ("nes-py", "measured")
GROUND = ("reached", "stood")
HUD_ROWS = 32
"""Rows of the screen that show score and time."""
SCREEN_HEIGHT, SCREEN_WIDTH = 240, 256
MAX_ENVS, MAX_THREADS = 65_536, 1024


@dataclass(frozen=True)
class ViewConfig:
    """What the agent sees and how often it acts."""

    frame_skip: int = 4
    """Frames each action is held."""
    frame_skip_noise: int = 0
    """Hold each action up to N frames longer or shorter, at random."""
    frame_stack: int = 4
    """Frames stacked in an observation."""
    size: tuple[int, int] = (84, 84)
    """Height and width of a frame, in pixels."""
    observation: str = "gray"
    """Colour channel: gray, red or rgb; small frames are clearest in red."""
    palette: str = "nes-py"
    """Palette of observations: nes-py, or measured (from a television)."""
    crop_hud: bool = False
    """Crop the rows that show score and time."""
    max_pool: bool = False
    """Take the maximum of the last two frames, against flicker."""
    show_buttons: bool = False
    """Draw the buttons that were held over the top of each frame, as eight blocks."""
    sticky: float = 0.0
    """Probability per frame that the previous buttons stay pressed."""
    noop_max: int = 0
    """Maximum idle frames before an episode starts, sampled uniformly."""
    random_start: float = 0.0
    """Share of episodes that start as if in the middle of a game."""
    action_type: str = "simple"
    """Action set: right, simple, complex or extended."""
    ground: str = "reached"
    """Progress counts where Mario has been (reached) or stood (stood)."""
    stall_limit: int = 0
    """Truncate after N decisions without progress (0 = never)."""
    step_limit: int = 0
    """Truncate after N decisions (0 = never)."""

    def __post_init__(self) -> None:
        checks = (
            ("frame_skip", self.frame_skip, 1, 64),
            ("frame_skip_noise", self.frame_skip_noise, 0, self.frame_skip - 1),
            ("frame_stack", self.frame_stack, 1, 64),
            ("height", self.size[0], 1, SCREEN_HEIGHT - (HUD_ROWS if self.crop_hud else 0)),
            ("width", self.size[1], 1, SCREEN_WIDTH),
            ("noop_max", self.noop_max, 0, 10_000),
            ("stall_limit", self.stall_limit, 0, 1_000_000),
            ("step_limit", self.step_limit, 0, 1_000_000_000),
        )
        for name, value, low, high in checks:
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ConfigError(f"{name} must be a whole number from {low} to {high}, not {value!r}.")
        require(self, "sticky", at_least=0, at_most=1)
        require(self, "random_start", at_least=0, at_most=1)
        if self.observation not in OBSERVATIONS:
            raise ConfigError(f"Unknown observation {self.observation!r}: choose gray, red or rgb.")
        if self.palette not in PALETTES:
            raise ConfigError(f"Unknown palette {self.palette!r}: choose nes-py or measured.")
        if self.ground not in GROUND:
            raise ConfigError(f"Unknown ground {self.ground!r}: choose reached or stood.")
        action_names(self.action_type)

    def fixed(self, **changes: Any) -> ViewConfig:
        """This view without randomness: every episode starts alike, and no button sticks."""
        plain = {"frame_skip_noise": 0, "sticky": 0.0, "noop_max": 0, "random_start": 0.0}
        return replace(self, **{**plain, **changes})

    @property
    def channels(self) -> str:
        """The engine's letters for the picture's channels."""
        return OBSERVATIONS[self.observation]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one observation: stacked pictures times channels, height, width."""
        return (self.frame_stack * len(self.channels), *self.size)

    @property
    def num_actions(self) -> int:
        return len(action_names(self.action_type))

    @property
    def pool_settings(self) -> PoolSettings:
        """The view as the engine has it."""
        return {
            "frame_skip": self.frame_skip, "frame_skip_noise": self.frame_skip_noise,
            "frame_stack": self.frame_stack, "height": self.size[0], "width": self.size[1],
            "top": HUD_ROWS if self.crop_hud else 0, "channels": self.channels,
            "measured_palette": self.palette == "measured", "sticky": float(self.sticky),
            "noop_max": self.noop_max, "random_start": float(self.random_start), "max_pool": self.max_pool,
            "show_buttons": self.show_buttons,
            "ground_stood": self.ground == "stood",
            "stall_limit": self.stall_limit, "step_limit": self.step_limit,
            "actions": action_buttons(self.action_type),
        }  # fmt: skip


@dataclass(frozen=True)
class StageConfig:
    """Stages to play: `--random-stage` overrides `--stages`, which overrides `--world`, `--stage`, `--stage-span`."""

    world: int = 1
    """World, 1 to 8."""
    stage: int | str = 1
    """Stage of the world, 1 to 4, or a whole name such as 1-2."""
    stages: str = ""
    """Stages by name: 'all', a world such as '3', or '1-1,1-2'."""
    random_stage: bool = False
    """Sample the stage of each episode from all 32."""
    stage_span: int = 1
    """Number of consecutive stages, starting with --world and --stage."""
    levels: str = ""
    """Number of generated levels to train on, or endless."""
    level_replay: bool = False
    """Play levels more often that are cleared about half of the time."""
    difficulty: float = 0.3
    """Difficulty of generated levels, 0 to 1."""
    rom: str = ""
    """Path of the ROM; by default $WARPZONE_ROM or the installed package's."""
    env_threads: int = 0
    """Emulation threads (0 = one per core; one fewer with --overlap-collect)."""
    curriculum: Literal["fixed", "uniform", "progress"] = "uniform"
    """Stage sampling: uniform or by learning progress; fixed is the same as uniform."""

    def names(self) -> list[str]:
        """The stages as names; all generated levels together come last, as one."""
        if not self.levels:
            return self.plain_names()
        if not 0 <= self.difficulty <= 1:
            raise ConfigError(f"--difficulty is a number from 0 to 1, not {self.difficulty!r}.")
        beside = self.plain_names() if self.random_stage or self.stages else []
        return [*beside, f"levels@{self.difficulty:g}"]

    def plain_names(self) -> list[str]:
        """The stages of the game."""
        if self.random_stage:
            return list(ALL_STAGES)
        if self.stages:
            return parse_stages(self.stages)
        if isinstance(self.stage, str) and self.stage_span == 1:
            return parse_stages(self.stage)
        first = self.stage if isinstance(self.stage, str) else f"{self.world}-{self.stage}"
        return stage_span(first, self.stage_span)


def as_size(size: int | tuple[int, int] | list[int]) -> tuple[int, int]:
    """(height, width) from one number or a pair."""
    if isinstance(size, int) and not isinstance(size, bool):
        return size, size
    if isinstance(size, tuple | list) and len(size) == 2 and all(isinstance(n, int) for n in size):
        return size[0], size[1]
    raise ConfigError(f"size is one number or (height, width), not {size!r}.")


def thread_count(threads: int, num_envs: int) -> int:
    """Threads to use: 0 means one for each core this process may use, never more than environments."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 0 <= threads <= MAX_THREADS:
        raise ConfigError(f"threads must be a whole number from 0 to {MAX_THREADS}, not {threads!r}.")
    return max(1, min(threads or cores(), num_envs))


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
