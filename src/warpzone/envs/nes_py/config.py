"""Settings of the environments' backend, which are also the flags of the command line."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

from warpzone.errors import ConfigError, Error

RAM_BYTES = 0x800
"""Work RAM of the console."""


class BackendError(Error):
    """An environment of a backend could not be started or kept alive."""


@dataclass(frozen=True)
class BackendConfig:
    """On what the environments run, and how patient to be with it."""

    backend: Literal["native", "nes-py"] = "native"
    """native (our engine) or nes-py (gym-super-mario-bros, some hundred times slower)."""
    async_env: bool = False
    """nes-py: one worker process for each environment instead of all in this one."""
    force_sync: bool = False
    """nes-py: never start workers, whatever else is said."""
    env_start_method: Literal["auto", "fork", "forkserver", "spawn"] = "auto"
    """How workers are started; auto: forkserver on Linux, spawn elsewhere."""
    env_shared_memory: bool = True
    """Pictures of workers come through shared memory, not through their pipes."""
    parent_prewarm: bool = False
    """Make and close one environment here before the first worker: what can't work fails at once."""
    parent_prewarm_all: bool = False
    """The same for every stage of the run."""
    worker_start_delay: float = 0.0
    """Seconds between the starts of two workers."""
    env_reset_timeout: float = 0.0
    """Seconds each worker has to start and to reset; 0: the larger of 180 and 60 for each environment."""
    env_step_timeout: float = 60.0
    """Seconds a worker has for one decision before it counts as stuck."""
    env_retries: int = 2
    """How often a worker that failed, died or got stuck is replaced before workers are given up."""
    strict_env: bool = False
    """Stop when workers fail for good instead of going on in this process."""
    env_diagnostics_dir: str = ""
    """Where workers log the stages of their start; by default a new folder below the temporary one."""
    enable_ram_x_parse: bool = True
    """Read the x position from RAM where a backend gives none."""
    ram_x_high_addr: str = "0x006D"
    """Address of its high byte, in hexadecimal or decimal."""
    ram_x_low_addr: str = "0x0086"
    """Address of its low byte."""
    ram_x_failure_limit: int = 50
    """Failures to read it after which the fallback is switched off with one warning."""

    def __post_init__(self) -> None:
        if self.backend not in ("native", "nes-py"):
            raise ConfigError(f"Unknown backend {self.backend!r}: choose native or nes-py.")
        for name in ("worker_start_delay", "env_reset_timeout", "env_retries"):
            if getattr(self, name) < 0:
                raise ConfigError(f"--{name.replace('_', '-')} can't be negative.")
        if self.env_step_timeout <= 0:
            raise ConfigError("--env-step-timeout must be positive.")
        if self.ram_x_failure_limit < 1:
            raise ConfigError("--ram-x-failure-limit must be at least 1.")
        self.ram_x_addresses()

    @property
    def uses_workers(self) -> bool:
        return self.async_env and not self.force_sync

    def ram_x_addresses(self) -> tuple[int, int]:
        """Where the high and the low byte of the x position are."""
        addresses = []
        for name in ("ram_x_high_addr", "ram_x_low_addr"):
            text = str(getattr(self, name))
            try:
                address = int(text, 0)
            except ValueError:
                address = -1
            if not 0 <= address < RAM_BYTES:
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{flag} is an address below {RAM_BYTES:#x}, not {text!r}.")
            addresses.append(address)
        return addresses[0], addresses[1]

    def reset_timeout_s(self, num_envs: int) -> float:
        """Seconds a worker has for its start, and for a reset."""
        return self.env_reset_timeout or max(180.0, 60.0 * num_envs)

    def start_method(self) -> str:
        """How workers are started. Never fork by default: torch's threads would not survive it."""
        if self.env_start_method != "auto":
            return self.env_start_method
        return "forkserver" if sys.platform.startswith("linux") else "spawn"


def stage_is_strict() -> bool:
    """Whether a stage that a backend can't start is an error (`MARIO_FC_STRICT_STAGE=1`)."""
    return os.environ.get("MARIO_FC_STRICT_STAGE") == "1"


def stage_warnings_suppressed() -> bool:
    """Whether nothing is said about such a stage (`MARIO_SUPPRESS_FC_STAGE_WARN=1`)."""
    return os.environ.get("MARIO_SUPPRESS_FC_STAGE_WARN") == "1"
