"""Which snapshots are kept, and from which one the next episode begins."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from warpzone.errors import ConfigError
from warpzone.run.archive import (
    ADVANCE_PIXELS,
    CELL_PIXELS,
    SNAPSHOTS_PER_CELL,
    Archive,
    ArchiveConfig,
    Snapshot,
    cell_of,
)

STAGES = ["1-1", "1-2"]
PATIENCE = 200


def snapshot(progress: int, stage: int = 0, rooms: int = 1, time: int = 300, size: int = 100) -> Snapshot:
    cell = int(cell_of(np.array(progress), np.array(rooms)))
    return Snapshot(stage, cell, progress, rooms, time, zlib.compress(bytes(size), 0))


def archive_with(cells: int, stage: int = 0, max_bytes: int = 1 << 20) -> Archive:
    """An archive with one snapshot in each of the first cells after the start."""
    archive = Archive(STAGES, max_bytes, PATIENCE)
    for cell in range(1, cells + 1):
        archive.add(snapshot(cell * CELL_PIXELS, stage))
    return archive


def play(archive: Archive, cell: int, *, clears: int = 0, fails: int = 0, gained: int = 0) -> None:
    inside = archive.snapshots[0][int(cell_of(np.array(cell * CELL_PIXELS), np.array(1)))]
    for cleared in [True] * clears + [False] * fails:
        archive.restarted(inside[0], cleared, gained)


def mean_start(archive: Archive, draws: int = 400) -> float:
    return float(np.mean([archive.choose(0).progress / CELL_PIXELS for _ in range(draws)]))


def test_cells_are_in_order_of_progress_and_tell_rooms_apart() -> None:
    far = cell_of(np.array([0, 63, 64, 64, 10**6]), np.array([1, 1, 1, 2, 99]))
    assert far[0] == far[1] < far[2] < far[3] < far[4]


def test_a_full_cell_gives_up_what_promises_least() -> None:
    archive = Archive(STAGES, 1 << 20)
    first = [snapshot(70) for _ in range(SNAPSHOTS_PER_CELL)]
    assert [archive.add(one) for one in first] == [False] * (SNAPSHOTS_PER_CELL - 1) + [True]
    for _ in range(3):
        archive.restarted(first[1], cleared=False, gained=0)
        archive.restarted(first[2], cleared=True, gained=900)
    assert archive.add(snapshot(80))
    kept = archive.kept()
    assert len(kept) == SNAPSHOTS_PER_CELL
    assert first[1] not in kept
    assert first[2] in kept
    # Of equals, the one with the least time left goes.
    late = snapshot(80, time=20)
    archive.add(late)
    archive.add(snapshot(80))
    assert late not in archive.kept()


def test_memory_is_bounded_and_the_largest_stage_gives_way() -> None:
    size = len(snapshot(64).blob)
    archive = Archive(STAGES, 10 * size)
    archive.add(snapshot(64, stage=1))
    for cell in range(1, 30):
        for _ in range(2):
            archive.add(snapshot(cell * CELL_PIXELS))
            assert archive.size_bytes <= 10 * size
    assert len(archive.kept()) == 10
    assert archive.size_bytes == sum(len(one.blob) for one in archive.kept())
    assert len(archive.snapshots[1]) == 1
    for stage in range(2):
        assert archive.filled[stage].tolist() == sorted(archive.snapshots[stage])
        assert all(archive.snapshots[stage].values())


def test_until_the_first_clear_restarts_are_from_the_furthest_cells() -> None:
    archive = archive_with(40)
    assert archive.frontier(0) == 40 * CELL_PIXELS
    assert mean_start(archive) > 24
    # New ground is the success then.
    play(archive, 40, fails=5, gained=ADVANCE_PIXELS)
    play(archive, 39, fails=5, gained=ADVANCE_PIXELS - 1)
    cells = archive.filled[0]
    assert archive.advance_rate[0, cells[39]] == 1
    assert archive.advance_rate[0, cells[38]] == 0


def test_a_cell_that_leads_nowhere_is_chosen_less_and_less() -> None:
    archive = archive_with(40)
    before = archive.chances(0)[-1]
    play(archive, 40, fails=60)
    assert archive.chances(0)[-1] < before / 3


def test_the_frontier_moves_back_as_the_way_is_learned() -> None:
    archive = archive_with(40)
    play(archive, 40, clears=1)
    assert archive.frontier(0) == 40 * CELL_PIXELS
    late = mean_start(archive)
    for cell in range(40, 19, -1):
        play(archive, cell, clears=8, fails=2)
    assert archive.frontier(0) == 19 * CELL_PIXELS
    middle = mean_start(archive)
    for cell in range(19, 0, -1):
        play(archive, cell, clears=8, fails=2)
    assert archive.frontier(0) == CELL_PIXELS
    assert mean_start(archive) < middle < late
    assert archive.chances(0).sum() == pytest.approx(1)
    assert (archive.chances(0) > 0).all()


def test_a_dead_end_behind_the_way_does_not_hold_the_frontier() -> None:
    archive = archive_with(40)
    for cell in range(30, 36):
        play(archive, cell, clears=9, fails=1)
    for cell in range(36, 41):
        play(archive, cell, fails=30)
    assert archive.frontier(0) == 29 * CELL_PIXELS


def test_a_stage_that_gets_better_by_itself_gets_no_restarts() -> None:
    archive = archive_with(5)
    for episode in range(PATIENCE):
        archive.ended(0, cleared=False, progress=100 + episode)
    assert archive.need()[0] < 0.3
    for _ in range(4 * PATIENCE):
        archive.ended(0, cleared=False, progress=600)
    assert archive.need().tolist() == [1, 0]
    # A clear is better than the same way without one.
    for _ in range(60):
        archive.ended(0, cleared=True, progress=600)
    assert archive.need()[0] < 0.2


def test_a_mastered_stage_gets_no_restarts() -> None:
    archive = archive_with(5)
    for _ in range(3 * PATIENCE):
        archive.ended(0, cleared=True, progress=600)
    assert archive.need().tolist() == [0, 0]
    for _ in range(6):
        archive.ended(0, cleared=False, progress=300)
    assert 0 < archive.need()[0] < 1
    for _ in range(60):
        archive.ended(0, cleared=False, progress=300)
    assert archive.need()[0] == 1


def test_restarts_go_where_new_ground_is_seldom_won() -> None:
    archive = archive_with(40)
    for cell in range(1, 41):
        play(archive, cell, fails=20, gained=0 if cell == 10 else ADVANCE_PIXELS)
    chances = archive.chances(0)
    assert chances[9] > 4 * chances[8]


def test_what_was_saved_is_restored_and_draws_the_same() -> None:
    archive = archive_with(12)
    archive.add(snapshot(200, stage=1, rooms=2))
    archive.visits[0, 8:40] += 3
    play(archive, 5, clears=2, fails=1)
    archive.ended(1, cleared=True, progress=900)
    again = Archive(STAGES, 1 << 20, PATIENCE, seed=9)
    again.load_state_dict(archive.state_dict())
    assert again.size_bytes == archive.size_bytes
    assert (again.visits == archive.visits).all()
    assert (again.need() == archive.need()).all()
    assert [again.choose(0).number for _ in range(20)] == [archive.choose(0).number for _ in range(20)]
    assert (again.chances(0) == archive.chances(0)).all()
    # Another set of stages takes what it knows.
    other = Archive(["4-1", "1-2"], 1 << 20)
    other.load_state_dict(archive.state_dict())
    assert [one.stage for one in other.kept()] == [1]
    assert other.start_episodes.tolist() == [0, 1]


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in (
        {"archive_patience": -1},
        {"archive_share": 1.0},
        {"archive_share": -0.1},
        {"archive_mb": 0},
    ):
        with pytest.raises(ConfigError, match="archive"):
            ArchiveConfig(**wrong)  # type: ignore[arg-type]
