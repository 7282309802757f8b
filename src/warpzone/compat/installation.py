"""Putting our modules in place of theirs, in this process and in those it starts."""

from __future__ import annotations

import importlib
import importlib.abc
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from warpzone.errors import ConfigError

PACKAGES = ("nes_py", "gym_super_mario_bros")
HOMES = {7: "warpzone.compat", 9: "warpzone.compat.v9"}
"""Where the packages of an interface are, by the major version of gym-super-mario-bros."""


def interface_installed() -> int:
    """7 or 9: the interface of the gym-super-mario-bros that is installed; 7 if there is none."""
    try:
        major = int(metadata.version("gym-super-mario-bros").split(".")[0])
    except metadata.PackageNotFoundError:
        return 7
    return 9 if major >= 9 else 7


def install(interface: int | None = None, *, children: bool = False) -> None:
    """From now on `import gym_super_mario_bros` and `import nes_py` give warpzone's modules.

    interface: 7 (gym: four values a step) or 9 (Gymnasium: five); that of the installed package if None.
    children: also in every Python that this process starts, not only in workers of multiprocessing.
    """
    chosen = interface_installed() if interface is None else interface
    if chosen not in HOMES:
        raise ConfigError(f"There is no interface {chosen!r}: choose 7 (gym) or 9 (Gymnasium).")
    for name in PACKAGES:
        loaded = sys.modules.get(name)
        if loaded is not None and loaded.__name__ != f"{HOMES[chosen]}.{name}":
            raise ConfigError(
                f"{name} has been imported already: call warpzone.compat.install() before that."
            )
    shadow = str(Path(__file__).parent / f"shadow{chosen}")
    if shadow not in sys.path:
        sys.path.insert(0, shadow)  # workers of multiprocessing inherit the path
    if children:
        behind = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder != shadow]
        os.environ["PYTHONPATH"] = os.pathsep.join([shadow, *filter(None, behind)])
    take_over(chosen)


def take_over(interface: int) -> None:
    """Enter our modules under their names."""
    for package in PACKAGES:
        home = f"{HOMES[interface]}.{package}"
        for name in [home, *_below(home)]:
            sys.modules[package + name.removeprefix(home)] = importlib.import_module(name)
    if interface == 7:
        from warpzone.compat.for_gymnasium import accept_gym_environments
        from warpzone.compat.four_values import accept_four_values

        accept_four_values()
        accept_gym_environments()
    if not any(isinstance(finder, MissingParts) for finder in sys.meta_path):
        sys.meta_path.append(MissingParts())


def _below(package: str) -> list[str]:
    module = importlib.import_module(package)
    return [found.name for found in pkgutil.walk_packages(module.__path__, package + ".")]


class MissingParts(importlib.abc.MetaPathFinder):
    """Asked last: says which part of the original a script needs that is not here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Nothing for other packages; an error for a part of these."""
        if fullname.split(".")[0] in PACKAGES:
            raise ModuleNotFoundError(
                f"{fullname} is a part of the original package that warpzone.compat does not have.",
                name=fullname,
            )
        return None
