"""What several commands have in common: flags, which their settings inherit and which come after their own, and files
that they write where a flag says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warpzone.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RunsFolder:
    """Where names of runs are looked up."""

    runs_dir: Path = Path("runs")
    """Folder of all runs."""


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """For commands that take long or write something."""

    dry_run: bool = False
    """Print what would be done and exit."""


@dataclass(frozen=True, kw_only=True)
class Rom:
    """Which game is played."""

    rom: str = ""
    """Path of the ROM; by default $WARPZONE_ROM or the installed package's."""


@dataclass(frozen=True, kw_only=True)
class TrainedAgent(RunsFolder, Rom, DryRun):
    """Which agent plays."""

    checkpoint: str = "mario"
    """Checkpoint or agent file, or a run's name for its best checkpoint."""
    trust_code: bool = False
    """Run the custom encoder kept in the run's folder; read it first."""
    threads: int = 0
    """Emulation threads (0 = one per core)."""


@dataclass(frozen=True, kw_only=True)
class Page(DryRun):
    """Where a page is served, and to whom."""

    host: str = "127.0.0.1"
    """Address to listen on; any but localhost needs --token."""
    port: int
    """Port to listen on (0 = any free one)."""
    token: str = ""
    """Access token for viewers, opened as /?token=..."""
    open: bool = False
    """Open the page in the browser."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"--port is a number from 0 to 65535, not {self.port}.")


@contextmanager
def writing(path: Path, flag: str = "--out") -> Iterator[None]:
    """Make the file's folder. What can't be written is refused in a sentence that names the flag."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{path} can't be written ({reason}): choose another {flag}.") from error
