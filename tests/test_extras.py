"""An environment needs the base install alone, and whatever lacks a package says which extra to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.extras import EXTRA_OF, what_to_install

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"pillow": "PIL", "nvidia-ml-py": "pynvml", "scikit-learn": "sklearn"}
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

MISSING = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Missing())
"""
PLAY = """
import gymnasium
import numpy as np
import warpzone

assert callable(warpzone.compat.vector) and warpzone.levels.generate(7).columns > 16
envs = warpzone.MarioVectorEnv(2, stage="1-1", seed=0)
envs.reset(seed=0)
for _ in range(20):
    observations, *_, info = envs.step(np.full(2, 3))
assert observations.any() and (info["x_pos"] > 60).all(), info
envs.close()

env = gymnasium.make("warpzone/SuperMarioBros-v0")
env.reset(seed=0)
env.step(1)
env.close()
from warpzone.envs.nes_py.vector import BackendVectorEnv
import warpzone.compat.nes_py.app.play_random
try:
    warpzone.train
except warpzone.ConfigError as error:
    print(error)
"""


def run_without(packages: object, program: str, *argv: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WARPZONE_")}
    command = [sys.executable, "-c", WITHOUT + program, ",".join(packages), *argv]  # type: ignore[call-overload]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environ)


def test_every_package_of_an_extra_is_known() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    listed = {}
    for extra in ("train", "wandb", "sweep", "cluster"):
        for requirement in extras[extra]:
            name = re.split(r"[^\w-]", requirement)[0]
            if name != "warpzone":
                listed[IMPORTED_AS.get(name, name)] = extra
    assert listed == EXTRA_OF
    base = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    assert base == {"numpy", "gymnasium", "gym-super-mario-bros"}
    assert "warpzone[all]" in extras["dev"]


def test_environments_play_with_the_base_install_alone() -> None:
    done = run_without(EXTRA_OF, PLAY)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == "warpzone.train needs torch, which is not installed: pip install 'warpzone[train]'.\n"
    )


@pytest.mark.parametrize(
    ("missing", "argv", "sentence"),
    [
        (EXTRA_OF, [], "the command line needs tyro, which is not installed: pip install 'warpzone[train]'."),
        (EXTRA_OF, ["train"], r"train needs \w+, which is not installed: pip install 'warpzone\[train\]'."),
        (EXTRA_OF, ["doctor"], r"doctor needs \w+, which is not installed: pip install 'warpzone\[train\]'."),
        (["torch"], ["train"], "train needs torch, which is not installed: pip install 'warpzone[train]'."),
        (
            ["fastapi"],
            ["watch"],
            "watch needs fastapi, which is not installed: pip install 'warpzone[train]'.",
        ),
        (
            ["optuna"],
            ["sweep", "--trials", "1"],
            "warpzone sweep needs Optuna: pip install 'warpzone[sweep]'.",
        ),
    ],
    ids=["nothing", "train", "doctor", "train-torch", "watch-fastapi", "sweep-optuna"],
)
def test_a_command_says_which_extra_it_lacks(missing: object, argv: list[str], sentence: str) -> None:
    done = run_without(missing, "from warpzone.cli.main import main; sys.exit(main(sys.argv[1:]))", *argv)
    said = done.stderr.removeprefix("warpzone: ").rstrip("\n")
    assert said == sentence or re.fullmatch(sentence, said), done.stderr
    assert done.returncode == 2


def test_help_and_version_need_no_extra() -> None:
    for flag in ("-h", "--version"):
        done = run_without(EXTRA_OF, "from warpzone.cli.main import main; sys.exit(main(sys.argv[1:]))", flag)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_other_import_errors_stay_what_they_are() -> None:
    assert what_to_install(ModuleNotFoundError(name="warpzone.nothing"), "train") is None
    assert what_to_install(ImportError("broken", name="torch"), "train") is None
