"""A training starts quickly: its first line does not wait for torch, and nothing loads what it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.small_runs import SMALL
from tests.test_extras import WITHOUT
from warpzone.run.config import TrainConfig

MAIN = "from warpzone.cli.main import main\nsys.exit(main(sys.argv[1:]))"
TRAIN_TWICE = """
import sys
from warpzone.cli.main import main

for updates in "1", "2":
    assert main([*sys.argv[1:], "--total-updates", updates]) == 0
assert "torch" in sys.modules
print("loaded:", sorted({"torch._dynamo", "torch._inductor", "sympy", "ray", "optuna"} & sys.modules.keys()))
"""


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)


@pytest.mark.parametrize("resumed", [False, True])
def test_the_first_line_does_not_wait_for_torch(tmp_path: Path, resumed: bool) -> None:
    if resumed:
        (tmp_path / "mario" / "checkpoints").mkdir(parents=True)
        (tmp_path / "mario" / "checkpoints" / "latest.pt").touch()
        (tmp_path / "mario" / "config.json").write_text(json.dumps(TrainConfig().as_dict()))
    flags = ("--preset", "cpu") if not resumed else ("--num-envs", "64", "--run-name", "mario")
    done = run(WITHOUT + MAIN, "torch", "train", "--runs-dir", str(tmp_path), "--stages", "1-2", *flags)
    assert done.stdout.splitlines()[0] == "[train] 1-2, 64 environments: loading torch"
    assert done.returncode == 2
    assert "torch" in done.stderr


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_a_training_loads_no_compiler(tmp_path: Path, learner: str) -> None:
    # torch's own optimizer would: two seconds before the first update.
    done = run(TRAIN_TWICE, "train", "--runs-dir", str(tmp_path), "--plain", *SMALL, "--learner", learner)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize("words", ["levels show 1-1 --text", "play -h", "watch -h", "eval -h", "record -h"])
def test_what_needs_no_network_does_not_wait_for_torch(words: str) -> None:
    done = run(WITHOUT + MAIN, "torch", *words.split())
    assert done.returncode == 0, done.stderr
    assert done.stdout
