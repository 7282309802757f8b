"""A custom encoder and reward function in the real trainer: recorded, resumed, evaluated, and never run unasked."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

import warpzone
from tests.run.small_runs import Quiet, small_config, small_run
from warpzone import custom_code
from warpzone.agents.exhibition import newest_agent
from warpzone.cli.main import main
from warpzone.envs.rewards import RewardConfig
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import CheckpointError, ConfigError
from warpzone.learn.native import why_not_native
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy

NET = """
from pathlib import Path
from torch import nn

Path(__file__).with_suffix(".ran").touch()

class Net(nn.Module):
    def __init__(self, channels, height, width):
        super().__init__()
        self.dense = nn.Linear(channels * height * width, 16)

    def forward(self, frames):
        return self.dense(frames.flatten(1).float() / 255.0).relu()
"""
REWARD = """
import numpy as np

def moved(before, after):
    return 0.5 * (after["x_pos"] - before["x_pos"]) - 1.0 * after["died"]

def wrong(before, after):
    return np.zeros(3)
"""


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that other tests named counts as not named."""
    monkeypatch.setattr(custom_code, "_named", {})


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


def forget() -> None:
    custom_code._named.clear()


def test_a_run_with_a_custom_encoder_records_it_and_resumes_with_it_only(net: Path, tmp_path: Path) -> None:
    runs, flags = tmp_path / "runs", ["--encoder", f"{net}:Net"]
    folder = small_run(runs, "--total-updates", "1", *flags).folder
    sha256 = hashlib.sha256(NET.encode()).hexdigest()
    for document in (folder / "config.json", folder / "checkpoints" / "latest.json"):
        config = json.loads(document.read_text())
        assert config.get("config", config)["model"]["encoder"] == f"{net}:Net#{sha256}"
    (copy,) = (folder / "code").glob("*.py")
    assert copy.read_text() == NET

    forget()
    assert small_run(runs, "--total-updates", "2", *flags).progress.update == 2

    net.write_text(NET + "# another version\n")
    with pytest.raises(CheckpointError, match="--accept-changed-code"):
        small_run(runs, "--total-updates", "3", *flags)
    display = Quiet()
    small_run(runs, "--total-updates", "3", "--accept-changed-code", *flags, display=display)
    assert any("accepted" in line for line in display.lines)
    assert len(list((folder / "code").glob("*.py"))) == 2


def test_the_offered_resume_names_the_code_that_the_user_named(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "train",
        "--runs-dir",
        str(tmp_path),
        "--run-name",
        "named",
        "--num-envs",
        "2",
        "--rollout-steps",
        "4",
    ]
    words += ["--minibatch-size", "4", "--no-record-video", "--plain", "--encoder", f"{net}:Net"]
    assert main([*words, "--total-updates", "1"]) == 0
    (offered,) = re.findall(r"resume: +warpzone (.*)", capsys.readouterr().out)
    assert offered.endswith(f" --encoder {net}:Net")
    assert main([*shlex.split(offered), "--plain"]) == 0


def test_code_that_a_run_brings_is_run_only_if_the_user_says_so(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    folder = small_run(runs, "--total-updates", "1", "--encoder", f"{net}:Net").folder
    weights = tmp_path / "given" / "agent.safetensors"
    assert main(["export", str(folder), "--format", "safetensors", "--out", str(weights)]) == 0
    assert str(tmp_path) not in weights.with_suffix(".json").read_text()
    net.unlink()
    forget()

    def ran() -> list[Path]:
        return [path for path in tmp_path.rglob("*.ran") if path.parent != tmp_path]

    for agent in (folder, weights):
        with pytest.raises(CheckpointError, match="trust_code"):
            warpzone.load_agent(agent)
    assert main(["eval", "--checkpoint", str(folder), "--episodes", "1"]) == 2
    assert "--trust-code" in capsys.readouterr().err
    with pytest.raises(CheckpointError, match="--trust-code"):
        newest_agent(folder)
    resumed = ["train", "--run-name", folder.name, "--runs-dir", str(runs), "--total-updates", "2"]
    assert main(resumed) == 2
    assert ran() == []

    teachers = ["--teachers", str(folder), "--teacher-rate", "0", "--learner", "torch"]
    display = Quiet()
    with pytest.raises(ConfigError, match="teach"):
        small_run(runs, "--run-name", "student", "--stages", "1-1", *teachers, display=display)
    assert any("not run unasked" in line for line in display.lines)
    assert ran() == []

    assert main([*resumed, "--trust-code", "--plain"]) == 0
    said = capsys.readouterr().out
    assert f"warpzone eval --checkpoint {folder} --trust-code\n" in said
    assert re.search(r"resume: .* --trust-code\n", said)
    assert json.loads((folder / "config.json").read_text())["run"]["trust_code"] is True
    forget()
    assert main(resumed) == 2, "trust is for one session"
    agents = [warpzone.load_agent(agent, device="cpu", trust_code=True) for agent in (folder, weights)]
    assert agents[1].evaluate("1-1", episodes=1, noop_max=0)[0].episodes == 1
    assert newest_agent(folder)[0].policy.encoder.hidden == 16
    forget()
    (copy,) = (folder / "code").glob("*.py")
    copy.write_text(NET + "# swapped\n")
    with pytest.raises(CheckpointError, match="not the code that was recorded"):
        warpzone.load_agent(folder, trust_code=True)


def test_a_card_that_names_code_without_a_digest_is_refused(net: Path, tmp_path: Path) -> None:
    folder = small_run(tmp_path / "runs", "--total-updates", "1").folder
    for document in (folder / "config.json", *folder.glob("checkpoints/*.json")):
        text = document.read_text()
        document.write_text(text.replace('"encoder": "tiny"', f'"encoder": "{net}:Net"'))
    for trust in (False, True):
        with pytest.raises(CheckpointError, match="digest"):
            warpzone.load_agent(folder, trust_code=trust)
    with pytest.raises(CheckpointError, match="digest"):
        warpzone.train(run_name=folder.name, runs_dir=folder.parent)
    assert not net.with_suffix(".ran").exists()


def test_a_custom_encoder_needs_torch_and_is_checked(tmp_path: Path, net: Path) -> None:
    assert "torch" in str(why_not_native(ModelConfig(encoder=f"{net}:Net")))
    with pytest.raises(ConfigError, match="torch"):
        small_config(tmp_path, "--encoder", f"{net}:Net", "--learner", "native")
    policy = Policy(ModelConfig(encoder=f"{net}:Net", recurrent_type="gru"), (4, 26, 32), 7)
    assert policy.act(
        torch.zeros(2, 4, 26, 32, dtype=torch.uint8), policy.initial_state(2), torch.ones(2).bool()
    )
    for body, message in (
        ("def Net(c, h, w): return 3", "not a torch.nn.Module"),
        (
            "from torch import nn\nclass Net(nn.Flatten):\n    def __init__(self, *s): super().__init__()",
            "floats",
        ),
        ("class Net: pass", "Net fails"),
        # Annotations are what the file makes of them, not what our own module would.
        ("def Net(c: int, h, w): raise Exception(Net.__annotations__['c'])", "Exception: <class 'int'>"),
        ("def Net(:", r"net\.py fails \(net\.py, line 1\)"),
        ("Net = 3", "no class or function 'Net'"),
    ):
        net.write_text(body)
        with pytest.raises(ConfigError, match=message):
            Policy(ModelConfig(encoder=f"{net}:Net"), (4, 26, 32), 7)


def test_a_reward_function_replaces_the_reward(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(REWARD)
    envs = MarioVectorEnv(4, "1-1", step_limit=5, reward=RewardConfig(reward_function=f"{file}:moved"))
    _, before = envs.reset(seed=0)
    over = np.zeros(4, np.bool_)
    for _ in range(12):
        _, rewards, terminated, truncated, info = envs.step(np.full(4, 3))
        # After an episode the next step only begins another: it earns nothing.
        expected = np.where(over, 0, 0.5 * (info["x_pos"] - before["x_pos"]))
        np.testing.assert_allclose(rewards, expected)
        np.testing.assert_array_equal(info["reward_terms"]["custom"], rewards)
        assert not info["reward_terms"]["distance"].any()
        before, over = info, terminated | truncated
    wrong = MarioVectorEnv(4, "1-1", reward=RewardConfig(reward_function=f"{file}:wrong"))
    wrong.reset(seed=0)
    with pytest.raises(ConfigError, match=r"reward function gave \(3,\)"):
        wrong.step(np.full(4, 3))
    file.write_text("def failing(before, after):\n    return after['bonus']")
    failing = MarioVectorEnv(4, "1-1", reward=RewardConfig(reward_function=f"{file}:failing"))
    failing.reset(seed=0)
    with pytest.raises(
        ConfigError,
        match=r"reward function fails \(mine.py, line 2\): KeyError: 'bonus'. The keys are x_pos, .*also has died",
    ):
        failing.step(np.full(4, 3))


def test_a_run_with_a_reward_function_resumes_and_plays(tmp_path: Path) -> None:
    file, runs = tmp_path / "mine.py", tmp_path / "runs"
    file.write_text(REWARD)
    flags = ["--reward-function", f"{file}:moved", "--stages", "1-1"]
    display = Quiet()
    folder = small_run(runs, "--total-updates", "2", *flags, display=display).folder
    assert display.records[-1]["env_shaping_last_scale"] == 1.0
    assert display.records[-1]["env_shaping_scaled_sum"] == display.records[-1]["env_shaping_raw_sum"] != 0
    forget()
    assert small_run(runs, "--total-updates", "3", *flags).progress.update == 3
    file.write_text(REWARD.replace("0.5", "0.7"))
    with pytest.raises(CheckpointError, match="--reward-function"):
        small_run(runs, "--total-updates", "4", *flags)
    forget()
    # An agent plays without the reward it was trained with.
    assert warpzone.load_agent(folder, device="cpu").evaluate("1-1", episodes=1)[0].episodes == 1
    assert newest_agent(folder)[2]["reward"].reward_function == ""
    assert "moved" in newest_agent(folder, trust_code=True)[2]["reward"].reward_function
