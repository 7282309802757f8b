"""Files that a command writes where a flag says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warpzone.errors import ConfigError


@contextmanager
def writing(path: Path, flag: str = "--out") -> Iterator[None]:
    """Make the file's folder. What can't be written is refused in a sentence that names the flag."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{path} can't be written ({reason}): choose another {flag}.") from error
