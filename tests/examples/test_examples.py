"""The examples run, in seconds, and do what they say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.warm import Process

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str, *arguments: str, cwd: Path) -> str:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = Process(str(EXAMPLES / name), *arguments, folder=cwd, env=env).end(280)
    assert done.code == 0, done.err
    return done.out


def test_custom_reward(tmp_path: Path) -> None:
    out = run_example("custom_reward.py", "--updates", "1", cwd=tmp_path)
    assert out == "runs/coins: 2048 decisions, all updates are done\n"


def test_custom_network(tmp_path: Path) -> None:
    out = run_example("custom_network.py", "--updates", "1", "--episodes", "2", cwd=tmp_path)
    assert out.startswith("1-1 after 1 updates:")
    assert (tmp_path / "patches.mp4").stat().st_size > 1000


def test_stable_baselines3(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    said = run_example("stable_baselines3_ppo.py", "--steps", "512", cwd=tmp_path)
    assert "trained for 512 steps" in said
    assert (tmp_path / "stable_baselines3_ppo.zip").stat().st_size > 100_000


def test_single_file_ppo(tmp_path: Path) -> None:
    small = ("--decisions", "512", "--num-envs", "4", "--steps", "64", "--device", "cpu")
    out = run_example("single_file_ppo.py", *small, cwd=tmp_path)
    assert out.startswith("512 decisions, 0 of the last ")
    assert (tmp_path / "single_file_ppo.pt").stat().st_size > 100_000


def test_rllib(tmp_path: Path) -> None:
    pytest.importorskip("tree", reason="RLlib's packages are missing: pip install 'ray[rllib]'")
    out = run_example("rllib_ppo.py", "--iterations", "1", "--batch", "64", cwd=tmp_path)
    assert out.startswith("iteration 1: ")


def test_random_agent_video(tmp_path: Path) -> None:
    run_example("random_agent_video.py", "random.mp4", "--decisions", "5", cwd=tmp_path)
    assert (tmp_path / "random.mp4").stat().st_size > 1000


def test_the_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cell by cell, as a kernel would."""
    notebook = json.loads((EXAMPLES / "first_look.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec(compile("".join(cell["source"]), "first_look.ipynb", "exec"), names)
    assert "x: [" in capsys.readouterr().out
    assert names["before"] == names["again"]
