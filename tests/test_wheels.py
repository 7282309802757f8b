"""`make wheels`: tags and names are right, the toolchain names the target, and an sdist has what a build needs.

The cross-build itself takes many minutes and needs PyPI; `make wheels` checks what it has built.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheels", ROOT / "wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wheels"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("architecture", "python", "tag", "module", "plays_on"),
    [
        ("x86_64", "3.10", "cp310-cp310", "_native.cpython-310-x86_64-linux-gnu.so", ["3.10"]),
        ("aarch64", "3.11", "cp311-cp311", "_native.cpython-311-aarch64-linux-gnu.so", ["3.11"]),
        ("aarch64", "3.12", "cp312-abi3", "_native.abi3.so", ["3.12", "3.13"]),
    ],
)
def test_a_wheel_has_the_tag_and_module_of_its_python(
    wheels: ModuleType, architecture: str, python: str, tag: str, module: str, plays_on: list[str]
) -> None:
    wheel = wheels.Wheel(architecture, python)
    assert wheel.tag == f"{tag}-linux_{architecture}"
    assert wheel.module == module
    assert wheel.plays_on == plays_on


def test_every_supported_python_is_covered(wheels: ModuleType) -> None:
    options = wheels.parse_options([])
    covered = {
        (a, version)
        for a in options.architectures
        for python in options.pythons
        for version in wheels.Wheel(a, python).plays_on
    }
    assert covered == {(a, f"3.{minor}") for a in ("x86_64", "aarch64") for minor in (10, 11, 12, 13)}


def test_here_is_the_one_wheel_that_this_python_takes(wheels: ModuleType) -> None:
    options = wheels.parse_options(["--here"])
    (wheel,) = [wheels.Wheel(a, p) for a in options.architectures for p in options.pythons]
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in wheel.plays_on
    assert wheel.architecture == wheels.platform.machine()


def test_what_can_not_be_built_is_refused(wheels: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        wheels.parse_options(["--architectures", "mips"])
    assert "x86_64" in capsys.readouterr().err


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_toolchain_compiles_for_the_target(wheels: ModuleType, tmp_path: Path, architecture: str) -> None:
    # A stand-in for the compiler prints what it is asked.
    zig = tmp_path / "zig"
    zig.write_text('#!/bin/sh\necho "$@"\n')
    zig.chmod(0o755)
    toolchain = wheels.write_toolchain(tmp_path / "toolchain", zig, architecture).read_text()
    named = dict(re.findall(r"set\((\w+) \"?([^\")]+)", toolchain))
    asked = subprocess.run(
        [named["CMAKE_CXX_COMPILER"], "-march=x86-64-v3", "a b.cpp"], capture_output=True, text=True
    ).stdout
    assert asked == f"c++ -target {architecture}-linux-gnu.2.17 -include stdio.h -march=x86_64_v3 a b.cpp\n"
    assert subprocess.run([named["CMAKE_AR"], "x"], capture_output=True, text=True).stdout == "ar x\n"
    if architecture != wheels.platform.machine():
        assert named["CMAKE_SYSTEM_PROCESSOR"] == architecture


def test_the_game_played_is_the_same_every_time(wheels: ModuleType) -> None:
    digests = {wheels.run(sys.executable, "-c", wheels.PLAY, 30).split()[-1] for _ in range(2)}
    assert len(digests) == 1
    assert re.fullmatch(r"[0-9a-f]{64}", digests.pop())


def test_python_310_has_what_we_import_of_the_standard_library(wheels: ModuleType) -> None:
    oldest = wheels.interpreter("3.10")
    if oldest is None:
        pytest.skip("there is no python3.10 here")
    names = {
        f"{node.module}:{alias.name}"
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] in sys.stdlib_module_names
        for alias in node.names
    }
    program = (
        "import sys, importlib, importlib.util as u\n"
        "for word in sys.argv[1:]:\n"
        "    module, name = word.split(':')\n"
        "    if not hasattr(importlib.import_module(module), name) and not u.find_spec(f'{module}.{name}'):\n"
        "        print(word)\n"
    )
    assert "enum:Enum" in names
    assert wheels.run(oldest, "-c", program, *sorted(names)) == ""


def test_an_sdist_has_what_a_build_needs() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert "native" in settings["sdist"]["include"]
    needed = {"native", "src", "pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"}
    assert not needed & set(settings["sdist"]["exclude"])
