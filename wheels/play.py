"""Install a wheel as a user would, play, and compare with the environment that runs this.

Wheels for aarch64 play under QEMU with Debian's Python, whose packages are unpacked into a folder.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from wheels.commands import ROOT, interpreter, run, say
from wheels.targets import Wheel

PLAY = """
import hashlib, sys
import numpy as np
import warpzone
from warpzone.engine.rom import rom

seen = hashlib.sha256()
envs = warpzone.MarioVectorEnv(4, stage="1-1", seed=0)
seen.update(envs.reset(seed=0)[0].tobytes())
chance = np.random.default_rng(0)
for _ in range(int(sys.argv[1])):
    observations, rewards, *_ = envs.step(chance.integers(0, envs.single_action_space.n, 4))
    seen.update(observations.tobytes() + rewards.tobytes())
held, machine = [int(word, 16) for word in sys.stdin.read().split()], warpzone.Machine(rom())
for number, buttons in enumerate(held):
    machine.step(buttons, render=number % 64 == 0)
    if number % 64 == 0:
        seen.update(machine.ram.tobytes() + machine.screen.tobytes())
print(seen.hexdigest())
"""
"""Random decisions in four environments, then a movie: a frame's buttons for each word of the input."""
NEEDED = ("numpy", "gymnasium")
"""Of the base install; the ROM's package has no wheel for aarch64, so its ROM is named instead."""
RELEASES = {"3.11": ("bookworm", "libssl3"), "3.13": ("trixie", "libssl3t64")}
"""Debian's release with a version of CPython, and its name for OpenSSL."""
PACKAGES = (
    *("python{0}-minimal", "libpython{0}-minimal", "libpython{0}-stdlib", "libc6", "libgcc-s1", "zlib1g"),
    *("libexpat1", "libffi8", "libbz2-1.0", "liblzma5", "libcrypt1", "libzstd1", "libstdc++6"),
)
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def played_by(command: list[object], movie: str, decisions: int, **environ: str) -> str:
    """The digest of what a Python plays."""
    return run(*command, "-c", PLAY, decisions, given=movie, **environ).split()[-1]


def play_here(wheel: Path, python: str, folder: Path, movie: str, decisions: int) -> str:
    """A wheel for this machine in a fresh environment."""
    found = interpreter(python)
    if found is None:
        return f"not run: there is no python{python} here"
    shutil.rmtree(folder, ignore_errors=True)
    run(found, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    return played_by([inside, "-I"], movie, decisions)


def unpack_debian(folder: Path, python: str) -> str:
    """Debian's Python for arm64, unpacked and not installed; why not, if it can't be had."""
    root = folder / "root"
    if (root / f"usr/bin/python{python}").exists():
        return ""
    release, ssl = RELEASES[python]
    for name in ("lists/partial", "cache/archives/partial", "packages"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    source = f"deb [arch=arm64 signed-by={KEYS}] http://deb.debian.org/debian {release} main\n"
    (folder / "sources.list").write_text(source)
    options = {
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    apt = ["apt-get", "-qq", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    say(f"fetching Python {python} for arm64 from Debian {release}")
    names = [ssl, *(name.format(python) for name in PACKAGES)]
    for words in (["update"], ["download", *names]):
        done = subprocess.run([*apt, *words], cwd=folder / "packages", capture_output=True, text=True)
        if done.returncode:
            return f"not run: Debian's packages for arm64 can't be had ({done.stderr.strip()[-200:]})"
    for package in sorted((folder / "packages").glob("*.deb")):
        run("dpkg", "-x", package, root)
    if not (root / "lib").exists():
        # On an installed system another package makes this link.
        (root / "lib").symlink_to("usr/lib")
    return ""


def play_under_qemu(wheel: Path, python: str, folder: Path, movie: str, decisions: int) -> str:
    """A wheel for aarch64 with Debian's Python."""
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None or shutil.which("apt-get") is None:
        return "not run: needs apt-get and qemu-aarch64-static (package qemu-user-static)"
    if python not in RELEASES:
        return f"not run: Debian has no CPython {python} for aarch64"
    debian, site = folder / "debian", folder / "site"
    if problem := unpack_debian(debian, python):
        return problem
    shutil.rmtree(site, ignore_errors=True)
    plain = "cp" + python.replace(".", "")
    only = [word for name in ("2_28", "2_17") for word in ("--platform", f"manylinux_{name}_aarch64")]
    only += ["--python-version", python, "--implementation", "cp"]
    only += [word for abi in (plain, "abi3", "none") for word in ("--abi", abi)]
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
    run(*pip, "-c", ROOT / "constraints.txt", *NEEDED)
    run(*pip, "--no-deps", wheel)
    rom = run(sys.executable, "-m", "warpzone.engine.rom").split()[-1]
    inside = debian / "root"
    environ = {"PYTHONHOME": str(inside / "usr"), "PYTHONPATH": str(site), "WARPZONE_ROM": rom}
    return played_by([qemu, "-L", inside, inside / f"usr/bin/python{python}"], movie, decisions, **environ)


def play(wheel: Wheel, file: Path, python: str, work: Path, movie: str, decisions: int) -> str:
    """The digest of what a wheel plays with a version of CPython, or why it was not run."""
    folder = work / "check" / f"{wheel.name}-{python}"
    if wheel.system.cmake == (platform.system(), platform.machine()):
        return play_here(file, python, folder, movie, decisions)
    if wheel.name == "aarch64":
        return play_under_qemu(file, python, folder, movie, decisions)
    return "never run: there is no such machine here"
