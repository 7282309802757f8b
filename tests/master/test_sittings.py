"""bench/sittings.py: what one sitting leaves is where the next one goes on."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "sittings.py"
_spec = importlib.util.spec_from_file_location("sittings", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
sittings = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sittings)

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
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
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


def test_what_training_resumes_from_is_kept_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, back, carry = tmp_path / "state", tmp_path / "back", tmp_path / "carry"
    for run in ("specialist-1-1", "specialist-1-2", "polished"):
        for name in ("checkpoints/best.pt", "checkpoints/latest.pt", "checkpoints/step_7.pt", "videos/a.mp4"):
            (state / run / name).parent.mkdir(parents=True, exist_ok=True)
            (state / run / name).write_text(run + name)
    learners = {"1-1": {"status": "done"}, "1-2": {"status": "running"}}
    (state / "master.json").write_text(json.dumps({"specialists": learners}))
    back.mkdir()
    monkeypatch.setattr(sittings, "PIECE_BYTES", 100)
    assert sittings.pack_state(state, back) > 2
    sittings.take(back, carry)
    sittings.unpack(carry / "state", tmp_path / "again")
    kept = {
        path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*") if path.is_file()
    }
    unfinished = [state / run / "checkpoints" for run in ("specialist-1-2", "polished")]
    wanted = [state / "master.json", state / "specialist-1-1" / "checkpoints" / "best.pt"]
    wanted += [folder / name for folder in unfinished for name in ("best.pt", "latest.pt")]
    assert kept == {path.relative_to(state) for path in wanted}
    for path in kept:
        assert (tmp_path / "again" / path).read_bytes() == (state / path).read_bytes()


def test_a_sitting_that_left_nothing_replaces_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "carry" / "state" / "state.00"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"of the last sitting")
    with pytest.raises(SystemExit, match="has no pieces of a state"):
        sittings.take(tmp_path, tmp_path / "carry")
    assert kept.read_bytes() == b"of the last sitting"
