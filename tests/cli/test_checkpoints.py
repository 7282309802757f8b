"""`warpzone checkpoints` shows what is there and deletes only what it is told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from warpzone.checkpoints.saving import numbered_checkpoints, save_checkpoint, step_name
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.cli.checkpoints import run
from warpzone.errors import CheckpointError, ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "demo" / "checkpoints"
    for n in (1, 2, 3):
        meta = CheckpointMeta(global_step=n * 100, global_update=n, save_index=n, clear_rate={"1-1": n / 4})
        save_checkpoint(folder, step_name(n * 100), {"policy": {"w": torch.zeros(2, 3)}}, meta)
    save_checkpoint(folder, "latest", {}, CheckpointMeta(global_step=300, save_index=3))
    return folder


def test_list_says_which_are_sound(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "latest.pt").write_bytes(b"half")
    assert run(["list", str(folder.parents[1])]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "damaged" in next(line for line in lines if "latest.pt" in line)
    step = next(line for line in lines if step_name(300) in line).split()
    assert step[1:4] == ["3", "300", "75%"]
    assert step[-1] == "intact"


def test_a_run_is_found_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parents[2])
    assert run(["list", "demo"]) == 0
    assert run(["inspect", "demo"]) == 0
    assert "policy.w [2, 3]" in capsys.readouterr().out


def test_runs_elsewhere_are_found_with_runs_dir(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ["--runs-dir", str(folder.parents[1])]
    for argv in (["list"], ["list", "demo"], ["inspect", "demo"], ["prune", "demo", "--dry-run"]):
        assert run([*argv, *runs]) == 0
    with pytest.raises(CheckpointError, match=r"did you mean demo\?"):
        run(["inspect", "deno", *runs])
    with pytest.raises(CheckpointError, match=r"did you mean latest\.pt\?"):
        run(["inspect", str(folder / "lattest.pt"), *runs])


def test_inspect_as_json_is_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(folder / step_name(200)), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["global_update"] == 2
    assert shown["holds"] == {"policy.w": [2, 3]}


def test_prune_keeps_the_newest_and_latest(folder: Path) -> None:
    assert run(["prune", str(folder.parent), "--keep", "1", "--dry-run"]) == 0
    assert len(numbered_checkpoints(folder)) == 3
    assert run(["prune", str(folder.parent), "--keep", "1"]) == 0
    names = sorted(p.name for p in folder.iterdir())
    assert names == ["latest.json", "latest.pt", f"{step_name(300)}.json", f"{step_name(300)}.pt"]


def test_bad_input_is_one_of_our_errors(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        run(["prune", str(folder), "--keep", "0"])
    for command in ("list", "inspect", "prune"):
        with pytest.raises(CheckpointError):
            run([command, str(tmp_path / "nowhere")])
