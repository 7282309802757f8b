"""Settings of the environments' backend, which are also the flags of the command line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from warpzone.errors import ConfigError, Error, require

RAM_BYTES = 0x800
"""Work RAM of the console."""


class BackendError(Error):
    """An environment of a backend could not be started or kept alive."""


@dataclass(frozen=True)
class BackendConfig:
    """The emulator behind the environments, and how long to wait for it."""

    backend: Literal["native", "nes-py"] = "native"
    """Emulator: native, or nes-py (about a hundred times slower)."""
    async_env: bool = False
    """nes-py: run each environment in a worker process."""
    force_sync: bool = False
    """nes-py: never start workers."""
    env_start_method: Literal["auto", "fork", "forkserver", "spawn"] = "auto"
    """Start method of workers; auto is forkserver on Linux, else spawn."""
    env_shared_memory: bool = True
    """Pass the workers' observations through shared memory."""
    parent_prewarm: bool = False
    """Make and close one environment before starting workers."""
    parent_prewarm_all: bool = False
    """Make and close one environment per stage before starting workers."""
    worker_start_delay: float = 0.0
    """Delay between worker starts, in seconds."""
    env_reset_timeout: float = 0.0
    """Timeout of worker start and reset, in seconds (0 = max(180, 60 per environment))."""
    env_step_timeout: float = 60.0
    """Timeout of one worker step, in seconds."""
    env_retries: int = 2
    """Maximum replacements of a failed worker before falling back to sync."""
    strict_env: bool = False
    """Stop instead of falling back to sync when workers keep failing."""
    env_diagnostics_dir: str = ""
    """Folder of the workers' start logs; by default a temporary one."""
    enable_ram_x_parse: bool = True
    """Read the x position from RAM where a backend gives none."""
    ram_x_high_addr: str = "0x006D"
    """RAM address of the x position's high byte."""
    ram_x_low_addr: str = "0x0086"
    """RAM address of the x position's low byte."""
    ram_x_failure_limit: int = 50
    """Failed reads of the x position before the fallback is disabled."""

    def __post_init__(self) -> None:
        if self.backend not in ("native", "nes-py"):
            raise ConfigError(f"Unknown backend {self.backend!r}: choose native or nes-py.")
        require(self, "worker_start_delay", "env_reset_timeout", "env_retries", at_least=0)
        require(self, "env_step_timeout", above=0)
        require(self, "ram_x_failure_limit", at_least=1)
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
