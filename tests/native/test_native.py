"""The native programs below native/tests, built without Python and run one by one, and across platforms."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.engine.rom import rom_path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "native-tests"
ROM = "{rom}"
"""Stands for the path of the ROM."""
PROGRAMS = {
    "address": [],
    "compat": [],
    "cpu": [],
    "console": ["15", "1", "120"],
    "fuzz": [],
    "jit_equivalence": [ROM, "60", "2000"],
    "jit_sharing": [],
    "jit_memory": [],
    "journey": [],
    "pack": [],
    "pool": [],
    "sound": [],
    "team": [],
    "vector_loops": [],
    "whole_game": [],
}


SOURCES = ("*.hpp", "*.cpp", "CMakeLists.txt")
QUICKLY = "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O1 -o <OBJECT> -c <SOURCE>"
"""How these programs are compiled: in two thirds of the time. The module that Python loads is the optimised one."""


def build(folder: Path, targets: list[str], *options: str) -> None:
    cmake = shutil.which(
        "cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if cmake is None:
        pytest.skip("cmake is not installed")
    for command in (
        [
            *(cmake, "-S", str(ROOT / "native"), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", *options),
            f"-DCMAKE_CXX_COMPILE_OBJECT={QUICKLY}",
        ],
        [cmake, "--build", str(folder), "-j2", "--target", *targets],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def built_already() -> list[str]:
    """The option that links the engine which the set-up built for this platform, if that is of the sources as they
    are. Else it is given as empty: the build's cache may hold an older one."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    libraries = ROOT.glob(f"build/{python}-*/native/libwarpzone_core.a")
    sources = {path for kind in SOURCES for path in (ROOT / "native").rglob(kind)}
    newest = max(path.stat().st_mtime for path in sources - set((ROOT / "native" / "tests").iterdir()))
    current = [str(one.parent) for one in libraries if one.stat().st_mtime > newest]
    return [f"-DWARPZONE_BUILT={''.join(current[:1])}"]


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240,
        env={**os.environ, "WARPZONE_ROM": str(rom_path()), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def programs() -> Path:
    # The benchmarks only have to compile.
    build(BUILD, [*PROGRAMS, "digest", "pool_benchmark", "jit_benchmark"], *built_already())
    return BUILD


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PROGRAMS)
def test_native_program(programs: Path, name: str) -> None:
    arguments = [str(rom_path()) if word == ROM else word for word in PROGRAMS[name]]
    assert run([str(programs / name), *arguments], WARPZONE_FUZZ_SECONDS="2")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_play_gives_the_same_bytes_for_one_and_more_threads(programs: Path) -> None:
    lines = run([str(programs / "digest"), "1"])
    assert lines.count("\n") == 5
    assert run([str(programs / "digest"), "3"]) == lines


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_play_gives_the_same_bytes_on_arm(programs: Path) -> None:
    compiler, emulator = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64-static")
    if not compiler or not emulator:
        pytest.skip(
            "needs aarch64-linux-gnu-g++ and qemu-aarch64-static (packages g++-aarch64-linux-gnu, qemu-user-static)"
        )
    folder = ROOT / "build" / "native-tests-arm"
    build(
        folder, ["digest", "jit_equivalence"], "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_EXE_LINKER_FLAGS=-static",
    )  # fmt: skip
    assert run([emulator, str(folder / "digest"), "1"]) == run([str(programs / "digest"), "1"])
    assert run([emulator, str(folder / "jit_equivalence"), str(rom_path()), "8", "300"])
