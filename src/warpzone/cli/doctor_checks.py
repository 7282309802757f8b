"""Is everything there that a run needs? One check each, with the way to mend it."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from warpzone.engine.rom import identify, rom, rom_path
from warpzone.envs.nes_py.patches import installed, major, needs_patches
from warpzone.errors import RomError

COMPILERS = ("c++", "g++", "clang++", "cl")


@dataclass(frozen=True)
class Check:
    """What was found, whether it will do, and what to do if not."""

    name: str
    good: bool
    found: str
    fix: str = ""


def check_installation(folder: str = ".") -> list[Check]:
    """All checks; `folder` is where runs would be written."""
    return [
        check_python(sys.version_info[:2]),
        check_engine(),
        check_compiler(),
        check_rom(),
        *(check_version(name, least) for name, least in (("numpy", 1), ("gymnasium", 1), ("torch", 2))),
        check_nes_py(installed("nes-py"), installed("gym-super-mario-bros"), np.__version__),
        check_cuda(),
        check_write_access("runs folder", Path(folder)),
        check_write_access("temporary folder", Path(tempfile.gettempdir())),
    ]


def print_checks(checks: Sequence[Check], console: Console) -> int:
    """A green or red line each; 1 if one is red."""
    for check in checks:
        sign, colour = ("ok  ", "green") if check.good else ("FAIL", "red")
        fix = f" -> {check.fix}" if check.fix and not check.good else ""
        console.print(f"[{colour}]{sign}[/] {escape(f'{check.name}: {check.found}{fix}')}", highlight=False)
    return 0 if all(check.good for check in checks) else 1


def check_python(version: tuple[int, ...]) -> Check:
    return Check("python", version >= (3, 10), platform.python_version(), "install Python 3.10 or newer")


def check_engine() -> Check:
    """The compiled module loads and runs a frame."""
    try:
        engine = importlib.import_module("warpzone.engine")
        console = engine.Machine(rom())
        console.step(0, 2)
    except ImportError as error:
        return Check("engine", False, str(error), "build it: pip install -e . in the repository")
    except RomError as error:
        return Check("engine", True, f"loads; not run, since {str(error)[0].lower()}{str(error)[1:]}")
    return Check("engine", console.frame == 2, "loads and runs")


def check_compiler(find: Callable[[str], str | None] = shutil.which) -> Check:
    """Needed only to build from source."""
    wanted = os.environ.get("CXX")
    for name in (wanted, *COMPILERS) if wanted else COMPILERS:
        if path := find(name):
            return Check("compiler", True, path)
    return Check("compiler", False, "no C++ compiler found", "install g++ or clang++ with C++20, or set CXX")


def check_rom() -> Check:
    try:
        dump = identify(rom())
        return Check("rom", True, f"{dump.name if dump else 'unknown dump'} ({rom_path().name})")
    except RomError as error:
        return Check(
            "rom", False, str(error), "pip install gym-super-mario-bros, or set WARPZONE_ROM to an .nes file"
        )


def check_version(package: str, least: int) -> Check:
    version = installed(package)
    if version is None:
        return Check(package, False, "not installed", f"pip install '{package}>={least}'")
    return Check(package, major(version) >= least, version, f"pip install -U '{package}>={least}'")


def check_nes_py(nes_py: str | None, mario: str | None, numpy: str) -> Check:
    """The second backend: both packages, of versions that belong together."""
    if nes_py is None or mario is None:
        missing = "nes-py" if nes_py is None else "gym-super-mario-bros"
        return Check("nes-py", False, f"{missing} is not installed", "pip install gym-super-mario-bros")
    found = f"nes-py {nes_py}, gym-super-mario-bros {mario}"
    if (major(nes_py) >= 9) != (major(mario) >= 9):
        return Check(
            "nes-py", False, f"{found} do not belong together", "pip install -U gym-super-mario-bros"
        )
    patched = f", patched in memory for NumPy {numpy}" if needs_patches(nes_py, numpy) else ""
    return Check("nes-py", True, found + patched)


def check_cuda() -> Check:
    """A GPU is welcome, not required; one that is there and can't be used is a fault."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return Check("cuda", False, f"torch does not load: {error}", "pip install 'warpzone[train]'")
    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        return Check("cuda", True, names)
    if shutil.which("nvidia-smi") and Path("/dev/nvidia0").exists():
        built = torch.version.cuda or "none"
        return Check(
            "cuda", False, f"there is a GPU, but torch (built for CUDA {built}) can't use it",
            "install a torch built for the driver's CUDA: see pytorch.org/get-started",
        )  # fmt: skip
    return Check("cuda", True, "no GPU: training runs on the processor (--preset cpu)")


def check_write_access(name: str, folder: Path) -> Check:
    """A file can be written there, and there is room for more."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"warpzone")
            file.flush()
        free_gb = shutil.disk_usage(folder).free / 1e9
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(
            name, False, f"can't write to it: {reason}", "change its owner, or use --runs-dir or TMPDIR"
        )
    return Check(
        name, free_gb >= 0.5, f"writable, {free_gb:.1f} GB free", "make room: a run wants half a gigabyte"
    )
