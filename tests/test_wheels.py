"""`make wheels`: tags and names are right, the toolchain names the target, what is done is not done again.

The cross-build itself takes many minutes and needs PyPI; `make wheels` checks what it has built.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wheels import __main__ as script
from wheels import release
from wheels.build import sources, write_toolchain
from wheels.commands import interpreter, run
from wheels.play import played_by
from wheels.targets import SYSTEMS, Wheel, wanted

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("architecture", "python", "tag", "module", "plays_on"),
    [
        ("x86_64", "3.10", "cp310-cp310", "_native.cpython-310-x86_64-linux-gnu.so", ["3.10"]),
        ("aarch64", "3.11", "cp311-cp311", "_native.cpython-311-aarch64-linux-gnu.so", ["3.11"]),
        ("aarch64", "3.12", "cp312-abi3", "_native.abi3.so", ["3.12", "3.13"]),
    ],
)
def test_a_wheel_has_the_tag_and_module_of_its_python(
    architecture: str, python: str, tag: str, module: str, plays_on: list[str]
) -> None:
    wheel = Wheel(architecture, python)
    assert wheel.tag == f"{tag}-linux_{architecture}"
    assert wheel.module == module
    assert wheel.plays_on == plays_on


def test_every_supported_python_is_covered() -> None:
    options = script.parse_options([])
    wheels = [wheel for wheel in wanted(options.systems, options.pythons) if wheel.system.is_linux]
    covered = {(wheel.name, version) for wheel in wheels for version in wheel.plays_on}
    assert covered == {(name, f"3.{minor}") for name in ("x86_64", "aarch64") for minor in (10, 11, 12, 13)}
    # Headers of Linux will do for another system only with the stable ABI.
    assert [wheel.python for wheel in wanted(["macos-arm64"], options.pythons)] == ["3.12"]


def test_here_is_the_one_wheel_that_this_python_takes() -> None:
    options = script.parse_options(["--here"])
    (wheel,) = wanted(options.systems, options.pythons)
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in wheel.plays_on
    assert wheel.name == platform.machine()


@pytest.mark.parametrize(
    ("flags", "named"), [(["--systems", "mips"], "x86_64"), (["--movie", "none.fm2"], "no movie none.fm2")]
)
def test_what_can_not_be_built_or_played_is_refused(
    flags: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        script.parse_options(flags)
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("x86_64", "x86_64-linux-gnu.2.17"),
        ("aarch64", "aarch64-linux-gnu.2.17"),
        ("macos-arm64", "aarch64-macos.11.0"),
    ],
)
def test_the_toolchain_compiles_for_the_target(tmp_path: Path, name: str, target: str) -> None:
    # A stand-in for the compiler prints what it is asked.
    zig = tmp_path / "zig"
    zig.write_text('#!/bin/sh\necho "$@"\n')
    zig.chmod(0o755)
    toolchain = write_toolchain(tmp_path / "toolchain", zig, SYSTEMS[name]).read_text()
    named = dict(re.findall(r"set\((\w+) \"?([^\")]+)", toolchain))
    asked = subprocess.run(
        [named["CMAKE_CXX_COMPILER"], "-march=x86-64-v3", "-march=armv8.2-a+dotprod", "a b.cpp"],
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    zig_names = "-march=x86_64_v3 -mcpu=generic+v8_2a+dotprod"
    assert asked == f"c++ -target {target} -include stdio.h {zig_names} a b.cpp\n"
    assert subprocess.run([named["CMAKE_AR"], "x"], capture_output=True, text=True).stdout == "ar x\n"
    if name != platform.machine():
        system = (named["CMAKE_SYSTEM_NAME"], named["CMAKE_SYSTEM_PROCESSOR"])
        assert system == SYSTEMS[name].cmake


def test_the_game_played_is_the_same_every_time_and_depends_on_all_of_it() -> None:
    movie = "00 " * 40 + "08 " * 4 + "80 " * 90
    digests = [played_by([sys.executable], movie, 20) for _ in range(2)]
    assert digests[0] == digests[1]
    assert re.fullmatch(r"[0-9a-f]{64}", digests[0])
    assert digests[0] not in (played_by([sys.executable], movie, 21), played_by([sys.executable], "", 20))


def test_what_was_built_and_played_is_left_as_it_is(tmp_path: Path) -> None:
    file, setting = tmp_path / "a.whl", {"sources": sources(), "tools": {}, "play": {"decisions": 1}}
    file.write_bytes(b"wheel")
    entry = {"tag": "t", "file": "a.whl", "sha256": hashlib.sha256(b"wheel").hexdigest()}
    entry["played"] = {"3.11": script.SAME}
    script.save_results(tmp_path / "wheels.json", setting, {"t": entry})
    known = script.load_results(tmp_path / "wheels.json", setting)
    assert known == {"t": entry}
    assert script.is_built(known["t"], tmp_path)
    # Another play is played, and of other sources, without a file or with another one, everything is done again.
    other_play = script.load_results(tmp_path / "wheels.json", {**setting, "play": {"decisions": 2}})
    assert other_play == {"t": {**entry, "played": {}}}
    assert script.load_results(tmp_path / "wheels.json", {**setting, "sources": "others"}) == {}
    assert script.load_results(tmp_path / "none.json", setting) == {}
    file.write_bytes(b"other")
    assert not script.is_built(known["t"], tmp_path)
    assert not script.is_built(None, tmp_path)


def test_results_say_which_wheels_were_never_run() -> None:
    document = json.loads((ROOT / "docs" / "data" / "wheels.json").read_text())
    for wheel in document["wheels"]:
        assert all(said == script.SAME or " run: " in said for said in wheel["played"].values())
        if "linux" in wheel["tag"]:
            assert wheel["auditwheel"] == wheel["tag"].rpartition("-")[2]


def test_a_failed_step_of_a_release_check_stops_no_other_and_is_in_the_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    steps = {
        "good": ("works", release.step([sys.executable, "-c", ""])),
        "bad": ("fails", release.step([sys.executable, "-c", "raise SystemExit(3)"], ["false"])),
        "last": ("works too", release.step([sys.executable, "-c", "import os; os.environ['A']"], A="1")),
        "other": ("is not asked for", lambda: False),
    }
    monkeypatch.setattr(release, "STEPS", steps)
    monkeypatch.setattr(release, "OUT", tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["release", "--skip", "other"])
    assert release.main() == 1
    said = capsys.readouterr().out.partition("summary")[2].split()
    assert [word for word in said if word in ("passed", "FAILED", "left")] == [
        "passed",
        "FAILED",
        "passed",
        "left",
    ]
    monkeypatch.setattr(sys, "argv", ["release", "--only", "good", "last"])
    assert release.main() == 0


def test_python_310_has_what_we_import_of_the_standard_library() -> None:
    oldest = interpreter("3.10")
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
    assert run(oldest, "-c", program, *sorted(names)) == ""


def test_an_sdist_has_what_a_build_needs() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert "/native" in settings["sdist"]["include"]
    needed = {"/native", "/src", "/pyproject.toml", "/CMakeLists.txt", "/LICENSE", "/README.md"}
    assert not needed & set(settings["sdist"]["exclude"])
