"""Finding the cartridge image: a path, $WARPZONE_ROM, or the installed gym-super-mario-bros package."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

from warpzone.errors import RomError

PACKAGE = "gym_super_mario_bros"
LARGEST_IMAGE = 8 << 20
"""Bytes. A mapper-0 image has 41 KB; reading something far larger would only waste memory."""


@dataclass(frozen=True)
class Dump:
    """A known cartridge image."""

    name: str
    lost_levels: bool = False


KNOWN_DUMPS = {
    "ba39dde63ab209b1bc751e0535e72b18": Dump("Super Mario Bros. (Europe) (Rev 0A)"),
    "8e3630186e35d477231bf8fd50e54cdd": Dump("Super Mario Bros. (World)"),
    "3b006c952c922d918e71cc6de808b985": Dump("Super Mario Bros., background removed"),
    "11bd60d00480588cda46e09d65e550e6": Dump("Super Mario Bros., pixel art"),
    "006ecb8a2a608633d79cc7f16af308a0": Dump("Super Mario Bros., rectangles"),
    "7e327ef8941dc3fc673397c6510f6d38": Dump("Super Mario Bros. 2 (the Lost Levels)", lost_levels=True),
    "2b7e0a42acd587955d84442281b18d67": Dump("Super Mario Bros. 2, background removed", lost_levels=True),
}
"""By the MD5 of PRG and CHR together, which is what databases of dumps go by."""

_FILES = {False: "super-mario-bros.nes", True: "super-mario-bros-2.nes"}


def content_md5(image: bytes) -> str:
    """The MD5 of the image without its header, which differs between dumps of the same cartridge."""
    trainer = 512 if len(image) > 6 and image[6] & 4 else 0
    return hashlib.md5(image[16 + trainer :], usedforsecurity=False).hexdigest()


def identify(image: bytes) -> Dump | None:
    """The known dump with this content, if it is one."""
    return KNOWN_DUMPS.get(content_md5(image))


def packaged_file(name: str) -> Path:
    """A file of the installed gym-super-mario-bros package, such as the ROM of a variant."""
    found = _find_packaged(name)
    if found is None:
        raise RomError(
            f"{name} was not found: it comes with gym-super-mario-bros 7.4, so install that package."
        )
    return found


def _find_packaged(name: str) -> Path | None:
    """A file inside the installed gym-super-mario-bros package (7.x or 9.x), found without importing it."""
    # Where another package has taken the name over (warpzone.compat does), the ROMs are with the next of that name.
    specs = [PathFinder.find_spec(PACKAGE, [entry]) for entry in sys.path]
    if PACKAGE not in sys.modules:
        specs.insert(0, importlib.util.find_spec(PACKAGE))
    for spec in specs:
        for folder in (spec and spec.submodule_search_locations) or ():
            for candidate in sorted(Path(folder).rglob(name)):
                return candidate
    return None


def rom_path(path: str | os.PathLike[str] | None = None, *, lost_levels: bool = False) -> Path:
    """Where the ROM is: the path given, else $WARPZONE_ROM, else the installed package's.

    The variable names the game itself: the Lost Levels are not looked for there, even if a command has passed it on.
    """
    named = os.environ.get("WARPZONE_ROM")
    chosen = path or named
    if lost_levels and chosen and str(chosen) == named:
        chosen = None
    if chosen:
        found = Path(chosen).expanduser()
        if not found.is_file():
            raise RomError(f"There is no ROM at {found}: give the path of an .nes file.")
        return found
    packaged = _find_packaged(_FILES[lost_levels])
    if packaged is None:
        raise RomError(
            "No ROM was found: install gym-super-mario-bros, or give the path of an .nes file by WARPZONE_ROM or --rom."
        )
    return packaged


def rom(path: str | os.PathLike[str] | None = None, *, lost_levels: bool = False) -> bytes:
    """The bytes of the ROM (see `rom_path`). An image that is not a known dump gets a warning."""
    found = rom_path(path, lost_levels=lost_levels)
    try:
        if found.stat().st_size > LARGEST_IMAGE:
            raise RomError(f"The ROM {found} is too large for a mapper-0 cartridge.")
        image = found.read_bytes()
    except OSError as error:
        raise RomError(f"The ROM {found} can't be read: {error.strerror}.") from error
    _warn_if_unknown(content_md5(image), found.name)
    dump = identify(image)
    if lost_levels and dump is not None and not dump.lost_levels:
        raise RomError(f"{found.name} is {dump.name}, not the Lost Levels: name their ROM, or none.")
    return image


@lru_cache(maxsize=64)
def _warn_if_unknown(md5: str, name: str) -> None:
    if md5 not in KNOWN_DUMPS:
        warnings.warn(
            f"{name} is not a known dump of Super Mario Bros: it runs, but positions, flags and rewards may not apply.",
            stacklevel=3,
        )


if __name__ == "__main__":
    try:
        print(rom_path())
    except RomError as error:
        sys.exit(str(error))
