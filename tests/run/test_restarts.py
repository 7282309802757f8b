"""The archive beside the engine: snapshots are taken, outlived and started from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError
from warpzone.run.archive import ArchiveConfig, cell_of
from warpzone.run.restarts import HOLD, Restarts
from warpzone.watch.jsonl import read_records

from .small_runs import Quiet, measured, saved_state, small_config, small_run

N = 8
COLUMNS = slice(0, N)


def make(seed: int = 0, **settings: Any) -> tuple[MarioVectorEnv, Restarts]:
    envs = MarioVectorEnv(
        N, stage="1-1", frame_stack=1, size=(26, 32), autoreset_mode="same_step", threads=1, noop_max=30,
        stall_limit=60, seed=seed,
    )  # fmt: skip
    envs.reset()
    restarts = Restarts(
        ArchiveConfig(archive=True, archive_patience=0, **settings), ["1-1"], N, lambda: np.ones(1), seed=seed
    )
    restarts.attach([envs])
    return envs, restarts


def run_right(envs: MarioVectorEnv, restarts: Restarts, steps: int, seed: int = 0) -> list[dict[str, Any]]:
    """Steps of an agent that mostly runs and jumps to the right."""
    random = np.random.default_rng(seed)
    infos = []
    for _ in range(steps):
        infos.append(envs.step(random.choice([3, 4, 4, 4, 2], N))[-1])
        restarts.observe(COLUMNS, infos[-1])
    return infos


def test_episodes_begin_from_what_was_outlived_and_are_paid_from_there() -> None:
    envs, restarts = make(archive_share=0.9)
    random = np.random.default_rng(1)
    begun = 0
    for _ in range(700):
        _, rewards, *_, info = envs.step(random.choice([3, 4, 4, 4, 2], N))
        ended = info.get("_final_info", np.zeros(N, np.bool_))
        restarts.observe(COLUMNS, info)
        for row in np.flatnonzero(ended & (info["from_snapshot"] == 1)):
            begun += 1
            start = restarts._started[int(row)]
            assert info["progress"][row] == start.progress
            assert info["stage_index"][row] == 0
            assert info["x_pos"][row] > 64
            assert (
                start.cell == restarts._cell[row] == cell_of(np.array(start.progress), np.array(start.rooms))
            )
        # No decision is paid for the ground that a snapshot lies ahead.
        assert (rewards <= 0.02 * (30 + 50) + 1e-6).all()
    metrics = restarts.metrics()
    assert begun > 10
    assert 0 < metrics["archive_share"] <= 0.9
    assert metrics["archive_cells"] == len(restarts.archive.filled[0]) > 3
    assert metrics["archive_snapshots"] == len(restarts.archive.kept()) >= metrics["archive_cells"]
    assert metrics["archive_frontier"]["1-1"] > 64
    assert restarts.archive.visits.sum() > metrics["archive_cells"]
    assert restarts.archive.starts.sum() == metrics["archive_share"] * restarts_and_starts(restarts)
    envs.close()


def restarts_and_starts(restarts: Restarts) -> int:
    return int(restarts.archive.starts.sum() + restarts.archive.start_episodes.sum())


def test_a_snapshot_that_is_not_outlived_is_not_kept() -> None:
    envs, restarts = make(archive_share=0.0)
    died = 0
    for _ in range(300):
        info = run_right(envs, restarts, 1, seed=died)[0]
        for row in np.flatnonzero(info.get("_final_info", np.zeros(N, np.bool_))):
            died += 1
            assert not [one for one in restarts._candidates if one[1] == row]
    assert died > 0
    waiting = [when - restarts._clock for when, _, _ in restarts._candidates]
    assert all(0 < left <= HOLD for left in waiting)
    envs.close()


def test_memory_stays_within_its_bound() -> None:
    envs, restarts = make(archive_mb=0.01)
    for _ in range(6):
        run_right(envs, restarts, 60)
        assert 0 <= restarts.archive.size_bytes <= 0.01 * 2**20
    assert restarts.archive.added > len(restarts.archive.kept()) > 0
    envs.close()


FLAGS = (
    "--archive",
    "--archive-patience",
    "0",
    "--archive-share",
    "0.8",
    "--stages",
    "1-1,1-2",
    "--rollout-steps",
    "64",
    "--step-limit",
    "90",
)


def test_a_run_reports_only_episodes_from_the_true_start(tmp_path: Path) -> None:
    display = Quiet()
    small_run(tmp_path, "--run-name", "a", "--total-updates", "12", *FLAGS, display=display)
    episodes = list(read_records(tmp_path / "a" / "episodes.jsonl"))
    restarted = [one for one in episodes if one["start"] == "snapshot"]
    true = [one for one in episodes if one["start"] == "stage"]
    assert len(restarted) > 5
    assert {one["stage"] for one in restarted} <= {"1-1", "1-2"}
    state = saved_state(tmp_path / "a")
    assert state["curriculum"]["episodes"] == len(true)
    assert sum(len(seen) for seen in state["episodes"]["cleared"].values()) == len(true)
    assert state["episodes"]["returns"] == [one["return"] for one in true]
    assert display.records[-1]["archive_snapshots"] > 0

    # It goes on with what it had.
    more = Quiet()
    small_run(tmp_path, "--run-name", "a", "--total-updates", "13", *FLAGS, display=more)
    assert more.records[-1]["archive_cells"] >= display.records[-1]["archive_cells"]


@pytest.mark.parametrize("more", [("--double-buffer",), ("--overlap-collect",)])
def test_other_collectors_restart_too(more: tuple[str, ...], tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "12", *FLAGS, *more)
    assert any(one["start"] == "snapshot" for one in read_records(tmp_path / "a" / "episodes.jsonl"))
    if "--overlap-collect" in more:
        # Consoles that never rest are not saved; the archive is.
        state = saved_state(tmp_path / "a")
        assert state["envs"] is None
        assert state["archive"]["play"] is None
        small_run(tmp_path, "--run-name", "a", "--total-updates", "13", *FLAGS, *more)
        assert measured(tmp_path / "a")[-1]["archive_snapshots"] > 0


def test_it_is_off_unless_asked_for_and_needs_the_native_backend(tmp_path: Path) -> None:
    assert not small_config(tmp_path).archive.archive
    with pytest.raises(ConfigError, match="native backend"):
        small_config(tmp_path, "--archive", "--backend", "nes-py")
