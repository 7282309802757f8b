"""`warpzone master` on two stages with tiny settings: stopped, killed, resumed, and what it leaves."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from .commands import COMMAND, clean_environment, warpzone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TINY = (
    "--num-envs 8 --rollout-steps 16 --minibatch-size 64 --torch-threads 1 --env-threads 1 --log-interval 1 "
    "--no-enable-tensorboard --step-limit 40"
)
MASTER = (
    "master",
    "--stages",
    "1-1,1-2",
    "--minutes",
    "0.7",
    "--episodes",
    "2",
    "--out",
    "m",
    "--preset",
    "cpu",
)
PATIENCE_S = 300.0


def state(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / "m" / "master.json").read_bytes())
    except FileNotFoundError:
        return {}
    return found


def end_during(folder: Path, phase: str, number: signal.Signals) -> int:
    """Start it, send a signal a moment after the phase has begun, and see that nothing of it is left."""
    process = subprocess.Popen(
        [*COMMAND, *MASTER, f"--train-flags={TINY}"], cwd=folder, env=clean_environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE_S
    while state(folder).get("phases", {}).get(phase, {}).get("status") != "running":
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.0)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.communicate(timeout=120)
    _, alive = psutil.wait_procs(children, timeout=120)
    assert alive == []
    return process.returncode


def test_stopped_and_killed_on_its_way_it_still_ends_with_an_agent_and_its_card(tmp_path: Path) -> None:
    assert end_during(tmp_path, "specialists", signal.SIGTERM) == 143
    stopped = state(tmp_path)
    assert stopped["status"] == "stopped"
    assert end_during(tmp_path, "distil", signal.SIGKILL) == -signal.SIGKILL
    spent = sum(phase["spent_s"] for phase in state(tmp_path)["phases"].values())
    done = warpzone(tmp_path, *MASTER, f"--train-flags={TINY}", timeout_s=PATIENCE_S)
    assert done.code == 0, done.err
    folder, left = tmp_path / "m", state(tmp_path)
    assert left["status"] == "done"
    assert left["sittings"] == 3
    assert {phase["status"] for phase in left["phases"].values()} == {"done"}
    assert sum(phase["spent_s"] for phase in left["phases"].values()) > spent
    sharper = left["evaluations"].keys() - {"student", "polished"}
    assert sharper < {"student/sharper", "polished/sharper"}
    assert len(sharper) == 1
    assert set(left["short"]) == {"1-1", "1-2"}
    for name in ("specialist-1-1", "specialist-1-2", "student", "polished"):
        assert (folder / name / "checkpoints" / "latest.pt").exists()
        assert json.loads((folder / name / "outcome.json").read_text())["update"] > 0
    card = json.loads((folder / "agent.json").read_text())
    assert card["master"]["machine"]["python"]
    assert any("--noisy-sticky 0.25" in one["command"] for one in card["master"]["commands"])
    assert "short of the target: 1-2 sampled 0%, random start 0%: never cleared" in done.out
    assert json.loads((folder / "eval.json").read_text())["results"].keys() == {"sampled", "greedy", "sticky"}
    # More minutes, and of its runs nothing is left: it goes on from its agent.
    decisions = left["specialists"]["1-1"]["decisions"]
    for run in ("specialist-1-1", "specialist-1-2", "student", "polished"):
        shutil.rmtree(folder / run)
    minutes = sum(phase["spent_s"] for phase in left["phases"].values()) / 60 + 0.75
    more = warpzone(
        tmp_path, *MASTER, "--minutes", f"{minutes:.3f}", "--parallel", "2", f"--train-flags={TINY}",
        timeout_s=PATIENCE_S,
    )  # fmt: skip
    assert more.code == 0, more.err
    again = state(tmp_path)
    begun = [
        one["command"] for one in again["commands"] if "--begin-with m/agent.safetensors" in one["command"]
    ]
    assert {one.split()[3] for one in begun} == {"specialist-1-1", "specialist-1-2", "student"}
    assert again["specialists"]["1-1"]["decisions_before"] == decisions
    assert {"agent-1", "student", "polished-2"} <= again["evaluations"].keys()
    assert (folder / "agent-1" / "agent.safetensors").exists()
    assert json.loads((folder / "agent.json").read_text())["master"]["chosen"] in again["evaluations"]


def test_what_can_not_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    other = tmp_path / "other.nes"
    other.write_bytes(b"NES\x1a\x02\x01" + bytes(10 + 40960))
    for flags, said in (
        (("--rom", str(other)), "is not a known dump of Super Mario Bros"),
        (("--minutes", "0.1"), "0.1 minutes are too few"),
        (("--train-flags=--num-elves 3",), "has no flag --num-elves"),
    ):
        refused = warpzone(tmp_path, *MASTER, *flags)
        assert refused.code == 2
        assert said in refused.err
        assert "Traceback" not in refused.err
    assert not (tmp_path / "m").exists()
