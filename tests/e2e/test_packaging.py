"""The wheel and the sdist, built from a clean copy of what is tracked, hold what a user needs and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build", reason="the package build is not installed: pip install build")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    folder = tmp_path_factory.mktemp("package")
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    (folder / "source.tar").write_bytes(archive)
    with tarfile.open(folder / "source.tar") as tar:
        tar.extractall(folder / "source", filter="data")
    # What earlier builds left is no part of it.
    left = folder / "source" / "build" / "portable" / "native"
    left.mkdir(parents=True)
    (left / "left.o").touch()
    # The wheel is built from the sdist, in an environment of its own, and compiled in half the time: what is in it
    # and where is the same.
    quickly = "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O0 -o <OBJECT> -c <SOURCE>"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(folder / "source")),
            f"-Ccmake.define.CMAKE_CXX_COMPILE_OBJECT={quickly}",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "dist"


def test_the_wheel_has_the_engine_and_the_page_and_no_rom(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.startswith("warpzone/engine/_native") and name.endswith(".so") for name in names)
    assert "warpzone/watch/panel/static/index.html" in names
    assert not [name for name in names if name.endswith(".nes") or name.startswith("tests")]


def test_the_sdist_can_be_built_elsewhere(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert [name for name in names if name.startswith("build")] == []
    assert {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md", "native/bindings.cpp"} <= names


def test_the_wheel_works_without_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    site, clean = tmp_path / "site", tmp_path / "clean"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True)
    # A new environment: this one's would put the checkout before everything else.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clean)], check=True)
    program = (
        "import sys, warpzone; from warpzone.cli.main import main; "
        "assert warpzone.__file__.startswith(sys.argv[1]); sys.exit(main(['train', '--dry-run']))"
    )
    done = subprocess.run(
        [str(clean / "bin" / "python"), "-c", program, str(site)],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{site}:{sysconfig.get_path('purelib')}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert '"num_envs"' in done.stdout
