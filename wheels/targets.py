"""Which wheels there are: systems, versions of CPython, tags and file names."""

from __future__ import annotations

from dataclasses import dataclass

GLIBC = "2.17"
PYTHONS = ("3.10", "3.11", "3.12")
FIRST_STABLE = (3, 12)
"""The stable ABI has what nanobind needs since this version."""
NEWEST = "3.13"


@dataclass(frozen=True)
class System:
    """A kind of machine, as Zig, CMake and a wheel's tag name it."""

    zig: str
    cmake: tuple[str, str]
    tag: str

    @property
    def is_linux(self) -> bool:
        return self.cmake[0] == "Linux"


SYSTEMS = {
    "x86_64": System(f"x86_64-linux-gnu.{GLIBC}", ("Linux", "x86_64"), "linux_x86_64"),
    "aarch64": System(f"aarch64-linux-gnu.{GLIBC}", ("Linux", "aarch64"), "linux_aarch64"),
    "macos-arm64": System("aarch64-macos.11.0", ("Darwin", "arm64"), "macosx_11_0_arm64"),
}
LINUX = [name for name, system in SYSTEMS.items() if system.is_linux]


@dataclass(frozen=True)
class Wheel:
    """One to build: for a system, with the headers of a version of CPython."""

    name: str
    """Of the system."""
    python: str

    @property
    def system(self) -> System:
        return SYSTEMS[self.name]

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.python.split(".")
        return int(major), int(minor)

    @property
    def is_stable(self) -> bool:
        return self.version >= FIRST_STABLE

    @property
    def tag(self) -> str:
        """Without the version of the C library, which auditwheel finds out."""
        plain = "cp{}{}".format(*self.version)
        return f"{plain}-{'abi3' if self.is_stable else plain}-{self.system.tag}"

    @property
    def final_tag(self) -> str:
        return self.tag.replace("-linux_", f"-manylinux_{GLIBC.replace('.', '_')}_")

    @property
    def module(self) -> str:
        """The name under which the interpreter looks for the engine."""
        if self.is_stable:
            return "_native.abi3.so"
        return "_native.cpython-{}{}-{}-linux-gnu.so".format(*self.version, self.name)

    @property
    def plays_on(self) -> list[str]:
        """The versions of CPython it is for, up to the newest supported."""
        return [self.python, NEWEST] if self.is_stable else [self.python]


def wanted(systems: list[str], pythons: list[str]) -> list[Wheel]:
    """One of each; other systems than Linux get the stable ABI only, as the headers here are Linux's."""
    wheels = [Wheel(name, python) for name in systems for python in pythons]
    return [wheel for wheel in wheels if wheel.system.is_linux or wheel.is_stable]
