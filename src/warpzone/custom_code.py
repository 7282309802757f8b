"""Custom code in a run: an encoder or a reward function that the user names as `file.py:Name`.

A run records what it was given as `file.py:Name#<sha256 of the file>` and keeps a copy of the file. Naming a file runs
it. A reference with a digest comes from a run, a checkpoint or a card, which somebody else may have written: it runs
only after the user has named the same bytes in this process, or has said `trust`.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from warpzone.errors import CheckpointError, ConfigError, Error

FOLDER = "code"
"""Where a run keeps its copies."""


@dataclass(frozen=True)
class Reference:
    """A name in a Python file; `sha256` is empty until the file has been read."""

    file: Path
    name: str
    sha256: str = ""

    @property
    def copy(self) -> str:
        """Name of the copy that a run keeps."""
        return f"{self.file.stem}-{self.sha256[:12]}.py"

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" + (f"#{self.sha256}" if self.sha256 else "")


_named: dict[tuple[str, str], Any] = {}
"""By digest and name: what the user has named in this process."""
_sources: dict[str, bytes] = {}
"""By digest: the files of those."""


def is_reference(text: str) -> bool:
    return ".py:" in text


def parse(text: str) -> Reference:
    reference, _, sha256 = text.partition("#")
    file, dot_py, name = reference.rpartition(".py:")
    if not dot_py or not file or not name.isidentifier() or (sha256 and len(sha256) != 64):
        raise ConfigError(f"{text!r} names no code: write file.py:Name.")
    return Reference(Path(file + ".py"), name, sha256)


def named(given: Any) -> str:
    """The reference, with its digest, of what the user names: `file.py:Name`, or a class or function itself."""
    if not isinstance(given, str):
        return _registered(given)
    reference = parse(given)
    if reference.sha256:
        return given
    return str(_run(reference, _read(reference.file, ConfigError)))


def load(text: str) -> Any:
    """The object of a reference. One that only a file names is refused: see `trust`."""
    reference = parse(text if "#" in text else named(text))
    key = reference.sha256, reference.name
    if key not in _named:
        raise CheckpointError(
            f"This run was trained with your {reference.file.name}:{reference.name}, and code is not run unasked: name "
            "your file again, as in the first command, or read the copy in the run's folder and add --trust-code (in "
            "Python, trust_code=True)."
        )
    return _named[key]


def is_named(text: str) -> bool:
    """Whether the user has named this code in this process."""
    reference = parse(text)
    return (reference.sha256, reference.name) in _named


def check_recorded(text: Any) -> None:
    """Refuse a reference without a digest in a file: only a user names code so."""
    if isinstance(text, str) and is_reference(text) and not parse(text).sha256:
        raise CheckpointError(
            f"{text!r} is recorded without the digest of its code: choose another checkpoint."
        )


def trust(text: str, *folders: Path) -> None:
    """Run the copy in one of the folders of a run: only if the user said so. It must be the code that was recorded."""
    reference = parse(text)
    if is_named(text):
        return
    copies = [folder / FOLDER / reference.copy for folder in folders]
    copy = next((path for path in copies if path.is_file()), None)
    if copy is None:
        raise CheckpointError(
            f"{copies[0]} is missing: restore it, or name the file of {reference.name} yourself."
        )
    source = _read(copy, CheckpointError)
    if hashlib.sha256(source).hexdigest() != reference.sha256:
        raise CheckpointError(f"{copy} is not the code that was recorded: restore it from a backup.")
    _run(Reference(copy, reference.name), source)


def keep(text: str, folder: Path) -> None:
    """Copy the file of a reference below a run's folder."""
    reference = parse(text)
    target = folder / FOLDER / reference.copy
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_sources[reference.sha256])


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Say in a sentence which code of the user's failed, and where."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        written = isinstance(error, SyntaxError) and error.lineno
        at: Any = error if written else traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}, line {at.lineno}"
        raise ConfigError(f"{what} fails ({where}): {type(error).__name__}: {error}") from error


def _read(file: Path, error: type[ConfigError] | type[CheckpointError]) -> bytes:
    try:
        return file.read_bytes()
    except OSError as cause:
        raise error(f"{file} can't be read ({cause.strerror}): check the path of your code.") from cause


def _run(reference: Reference, source: bytes) -> Reference:
    """Execute exactly the bytes that are recorded, as a module of their own."""
    pinned = Reference(reference.file, reference.name, hashlib.sha256(source).hexdigest())
    if (pinned.sha256, pinned.name) in _named:
        return pinned
    module = ModuleType(f"warpzone_custom_{pinned.sha256[:12]}")
    module.__file__ = str(reference.file)
    # Dataclasses and inspect look a class's module up there.
    sys.modules[module.__name__] = module
    with blamed(str(reference.file)):
        exec(compile(source, str(reference.file), "exec", dont_inherit=True), module.__dict__)
    if not callable(found := getattr(module, reference.name, None)):
        raise ConfigError(f"{reference.file} has no class or function {reference.name!r}: check the name.")
    _named[pinned.sha256, pinned.name], _sources[pinned.sha256] = found, source
    return pinned


def _registered(given: Any) -> str:
    name = getattr(given, "__qualname__", "")
    try:
        file = Path(inspect.getsourcefile(given) or "")
    except TypeError:
        file = Path()
    if not file.is_file() or not name.isidentifier():
        raise ConfigError(
            f"{given!r} can't be recorded: define it at the top level of a .py file, not in a notebook or a function."
        )
    source = _read(file, ConfigError)
    reference = Reference(file, name, hashlib.sha256(source).hexdigest())
    _named[reference.sha256, name], _sources[reference.sha256] = given, source
    return str(reference)
