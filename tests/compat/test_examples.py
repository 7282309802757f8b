"""The two scripts give the same on the original packages and on ours, to the last bit of their weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.envs.nes_py.patches import installed, major

EXAMPLES = Path(__file__).parents[2] / "examples"
# The original needs patches to run beside NumPy 2 at all.
ORIGINAL = """
import runpy, sys
from warpzone.envs.nes_py.patches import patch_nes_py
patch_nes_py()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def result(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command], capture_output=True, text=True, timeout=280,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


@pytest.mark.skipif(
    major(installed("gym-super-mario-bros") or "0") != 7, reason="needs gym-super-mario-bros 7"
)
@pytest.mark.parametrize(
    ("script", "arguments"),
    [("compat_dqn.py", ("--decisions", "90")), ("compat_sb3.py", ("--steps", "64", "--batch", "32"))],
)
def test_the_same_results(script: str, arguments: tuple[str, ...]) -> None:
    path = str(EXAMPLES / script)
    ours = result("-m", "warpzone.compat", path, *arguments)
    assert ours == result("-c", ORIGINAL, path, *arguments)
    assert "weights" in ours
