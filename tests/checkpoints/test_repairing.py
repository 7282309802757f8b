"""Backfill computes the steps the seed system forgot, once, and keeps the original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from warpzone.checkpoints.repairing import find_repairs
from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.cli.checkpoints import run
from warpzone.errors import CheckpointError, ConfigError

FLAT = {"global_step": 0, "global_update": 2000, "num_envs": 8}
NESTED = {"save_state": {"global_step": 0, "global_update": 2000}, "vector_env": {"num_envs": 8}}


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("layout", [FLAT, NESTED])
def test_the_step_is_update_times_envs_times_rollout(tmp_path: Path, layout: dict[str, Any]) -> None:
    path = write(tmp_path / "run01" / "a3c_world1_stage1_0002000.json", layout)
    original = path.read_bytes()
    assert run(["backfill", str(tmp_path)]) == 0
    repaired = json.loads(path.read_text())
    assert repaired.get("save_state", repaired)["global_step"] == 2000 * 8 * 64
    source = repaired["reconstructed_step_source"]
    assert source["method"] == "rebuild"
    assert (source["rollout_steps"], source["rollout_steps_from"]) == (64, "assumption")
    assert path.with_name(path.name + ".bak").read_bytes() == original


def test_twice_is_the_same_as_once(tmp_path: Path) -> None:
    write(tmp_path / "a.json", FLAT)
    run(["backfill", str(tmp_path)])
    once = everything(tmp_path)
    run(["backfill", str(tmp_path), "--assume-rollout-steps", "128"])
    assert everything(tmp_path) == once


def test_the_assumption_can_be_changed_and_a_recorded_length_wins(tmp_path: Path) -> None:
    write(tmp_path / "a.json", FLAT)
    write(tmp_path / "b.json", {**FLAT, "config": {"collect": {"rollout_steps": 32}}})
    run(["backfill", str(tmp_path), "--assume-rollout-steps", "16"])
    assert json.loads((tmp_path / "a.json").read_text())["global_step"] == 2000 * 8 * 16
    assert json.loads((tmp_path / "b.json").read_text())["global_step"] == 2000 * 8 * 32


@pytest.mark.parametrize("flag", ["--dry-run", "--check"])
def test_nothing_is_changed_when_only_looking(
    tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a.json", FLAT)
    before = everything(tmp_path)
    assert run(["backfill", str(tmp_path), flag]) == (1 if flag == "--check" else 0)
    assert everything(tmp_path) == before
    assert "[migrate]" in capsys.readouterr().out


def test_check_is_content_after_the_repair(tmp_path: Path) -> None:
    write(tmp_path / "a.json", FLAT)
    run(["backfill", str(tmp_path)])
    assert run(["backfill", str(tmp_path), "--check"]) == 0


def test_what_cannot_be_computed_is_said_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.json", {"global_step": 0, "global_update": 5})
    assert run(["backfill", str(tmp_path)]) == 0
    assert "cannot be computed" in capsys.readouterr().out
    assert "reconstructed_step_source" not in path.read_text()
    assert run(["backfill", str(tmp_path), "--check"]) == 1


@pytest.mark.parametrize(
    "document",
    [
        {"global_step": 0, "global_update": 0, "num_envs": 8},
        {"global_step": 5, "global_update": 9, "num_envs": 8},
        {"update": 5},
        [1, 2],
        {"global_step": 0, "global_update": "many", "num_envs": 8},
    ],
)
def test_other_files_are_left_alone(tmp_path: Path, document: Any) -> None:
    write(tmp_path / "a.json", document)
    assert find_repairs(tmp_path) == []


def test_the_update_may_come_from_inside_the_checkpoint(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {**NESTED, "save_state": {"global_step": 0, "global_update": 0}})
    torch.save({"global_update": 250}, path.with_suffix(".pt"))
    (repair,) = find_repairs(tmp_path)
    assert repair.global_step == 250 * 8 * 64


def test_a_repaired_checkpoint_of_ours_still_loads(tmp_path: Path) -> None:
    meta = CheckpointMeta(global_update=3, config={"num_envs": 2, "rollout_steps": 5})
    path = save_checkpoint(tmp_path, "latest", {}, meta)
    run(["backfill", str(tmp_path)])
    loaded = load_checkpoint(path).meta
    assert loaded.global_step == 30
    assert loaded.extra["reconstructed_step_source"]["num_envs"] == 2


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.json", FLAT)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "a.json").symlink_to(outside)
    assert find_repairs(runs) == []


def test_bad_input_is_one_of_our_errors(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="There is no checkpoint or run"):
        run(["backfill", str(tmp_path / "nowhere")])
    with pytest.raises(ConfigError):
        run(["backfill", str(tmp_path), "--assume-rollout-steps", "0"])
