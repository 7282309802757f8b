"""bench/sittings.py: what one sitting leaves is where the next one goes on."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta

SCRIPT = Path(__file__).parents[2] / "bench" / "sittings.py"
_spec = importlib.util.spec_from_file_location("sittings", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
sittings = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sittings)

META = CheckpointMeta(global_step=7, global_update=1)
COUNTING = """
try:
    import time
    time.sleep(600)
except KeyboardInterrupt:
    import pathlib, sys
    state = pathlib.Path(sys.argv[1])
    state.mkdir(exist_ok=True)
    stops = state / "stops"
    stops.write_text(str(int(stops.read_text()) + 1 if stops.exists() else 1))
"""
"""Counts how often it was stopped as Ctrl-C would, also where that comes as soon as it has begun."""


def run(folder: Path, *words: str) -> str:
    command = [sys.executable, str(SCRIPT), *words]
    # As in the background of a shell.
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_sitting_is_stopped_and_the_next_goes_on(tmp_path: Path) -> None:
    # The package counts as installed: this Python has it.
    (tmp_path / "build" / "sitting" / "site" / "warpzone-0.dist-info").mkdir(parents=True)
    (tmp_path / "counting.py").write_text(COUNTING)
    for name in ("first", "second"):
        back = ("--back", f"back-{name}", "--state", f"state-{name}")
        said = run(tmp_path, "sit", "carry", *back, "--seconds", "10", "--", "counting.py", "STATE")
        assert "counting.py ended with 0" in said
        run(tmp_path, "take", f"back-{name}", "carry")
    assert (tmp_path / "state-second" / "stops").read_text() == "2"


def test_one_that_was_started_goes_on_by_itself_and_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "build" / "sitting" / "site" / "warpzone-0.dist-info").mkdir(parents=True)
    (tmp_path / "counting.py").write_text(COUNTING)
    back, state = ("--back", "back"), ("--state", "state")
    run(tmp_path, "start", "carry", *back, *state, "--seconds", "10", "--", "counting.py", "STATE")
    assert "it goes on" in run(tmp_path, "look", "out", *back, *state, "--seconds", "0.1")
    said = run(tmp_path, "look", "out", *back, *state, "--seconds", "60")
    assert "counting.py ended with 0" in said
    assert "that was the last piece" in said
    run(tmp_path, "take", "out", "carry")
    sittings.unpack(list((tmp_path / "carry" / "state").iterdir()), tmp_path / "again")
    assert (tmp_path / "again" / "stops").read_text() == "1"


def test_nobody_waits_for_one_that_could_not_begin(tmp_path: Path) -> None:
    (tmp_path / "build" / "sitting" / "site" / "warpzone-0.dist-info").mkdir(parents=True)
    damaged = tmp_path / "carry" / "state" / "state.00"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no archive")
    back, state = ("--back", "back"), ("--state", "state")
    run(tmp_path, "start", "carry", *back, *state, "--seconds", "600", "--", "counting.py", "STATE")
    began = time.monotonic()
    assert "ReadError" in run(tmp_path, "look", "out", *back, *state, "--seconds", "300")
    assert time.monotonic() - began < 100


def test_what_training_resumes_from_is_kept_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, back, carry, again = (tmp_path / name for name in ("state", "back", "carry", "again"))
    torch.manual_seed(0)
    learner = {"policy": {"weight": torch.randn(64, 8)}, "moments": torch.randn(64, 8)}
    for run in ("specialist-1-1", "specialist-1-2", "student", "polished"):
        for name in ("best", "latest", "step_000000000007"):
            save_checkpoint(state / run / "checkpoints", name, {"learner": learner}, META)
        (state / run / "videos").mkdir()
        (state / run / "videos" / "a.mp4").write_bytes(b"video")
    specialists = {"1-1": {"status": "done"}, "1-2": {"status": "running"}}
    policies = {"student": {"status": "ended"}, "polished": {"status": "ended"}}
    (state / "master.json").write_text(json.dumps({"specialists": specialists, "policies": policies}))
    monkeypatch.setattr(sittings, "PIECE_BYTES", 1000)
    pieces = sittings.pack_state(state, dict(os.environ))
    assert pieces > sittings.PIECES_AT_ONCE
    for answer in range(-(-pieces // sittings.PIECES_AT_ONCE)):
        sittings.rest(back / str(answer), state)
        sittings.take(back / str(answer), carry)
    assert not list(sittings.kept(state).iterdir())
    sittings.give(carry, again)
    sittings.unpack(list(sittings.kept(again).iterdir()), again)
    kept = {path.relative_to(again) for path in again.rglob("*.pt")}
    folders = {
        run: Path(run) / "checkpoints" for run in ("specialist-1-1", "specialist-1-2", "student", "polished")
    }
    best = {folder / "best.pt" for folder in folders.values()}
    assert kept == best | {folders[run] / "latest.pt" for run in ("specialist-1-2", "student")}
    assert not list(again.rglob("*.mp4"))
    for path in best:
        weights = load_checkpoint(again / path).of_training()["learner"]
        assert weights.keys() == {"policy"}
        assert torch.equal(weights["policy"]["weight"], learner["policy"]["weight"].half().float())
    latest = load_checkpoint(again / "student" / "checkpoints" / "latest.pt").of_training()["learner"]
    assert torch.equal(latest["moments"], learner["moments"])


def test_of_a_slim_state_the_plan_the_agent_and_the_trails_are_kept(tmp_path: Path) -> None:
    state, again = tmp_path / "state", tmp_path / "again"
    save_checkpoint(state / "student" / "checkpoints", "best", {"learner": {}}, META)
    (state / "trails").mkdir()
    for name in ("master.json", "agent.json", "trails/1-1.json"):
        (state / name).write_text(json.dumps({"specialists": {}, "policies": {}}))
    weights = torch.randn(64, 8)
    save_file({"weight": weights}, state / "agent.safetensors", {"card": "its own"})
    sittings.pack_state(state, dict(os.environ), "slim")
    sittings.unpack(list(sittings.kept(state).iterdir()), again)
    kept = {str(path.relative_to(again)) for path in again.rglob("*") if path.is_file()}
    assert kept == {"master.json", "agent.json", "agent.safetensors", "trails/1-1.json"}
    with safe_open(again / "agent.safetensors", "pt") as agent:
        assert agent.metadata() == {"card": "its own"}
        assert torch.equal(agent.get_tensor("weight"), weights.half().float())


def test_of_a_state_with_weights_each_run_keeps_its_best(tmp_path: Path) -> None:
    state, again = tmp_path / "state", tmp_path / "again"
    for run in ("specialist-1-2", "student"):
        for name in ("best", "latest"):
            save_checkpoint(state / run / "checkpoints", name, {"learner": {"policy": {}}}, META)
    (state / "master.json").write_text(
        json.dumps(
            {"specialists": {"1-2": {"status": "running"}}, "policies": {"student": {"status": "running"}}}
        )
    )
    sittings.pack_state(state, dict(os.environ), "weights")
    sittings.unpack(list(sittings.kept(state).iterdir()), again)
    kept = {str(path.relative_to(again)) for path in again.rglob("*.pt")}
    assert kept == {"specialist-1-2/checkpoints/best.pt", "student/checkpoints/best.pt"}


def test_a_sitting_that_left_nothing_replaces_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "carry" / "state" / "state.00"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"of the last sitting")
    with pytest.raises(SystemExit, match="has no pieces of a state"):
        sittings.take(tmp_path, tmp_path / "carry")
    assert kept.read_bytes() == b"of the last sitting"
