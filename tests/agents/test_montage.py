"""Many stages in one film."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.videos import read_video
from warpzone.agents.agent import Agent, make_policy
from warpzone.agents.montage import (
    LABEL_HEIGHT,
    LINGER_S,
    TILE_HEIGHT,
    TILE_WIDTH,
    _grid,
    montage_frames,
    record_montage,
)
from warpzone.agents.play import Take, best_take
from warpzone.envs.stages import ALL_STAGES
from warpzone.run.presets import CPU


@pytest.fixture(scope="module")
def agent() -> Agent:
    torch.manual_seed(3)
    policy = make_policy(CPU.model, CPU.view, 1, torch.device("cpu"), "auto", 1)
    return Agent(policy, CPU.view, torch.device("cpu"))


def test_all_stages_are_a_grid_with_a_column_for_each_world() -> None:
    places, shape = _grid(ALL_STAGES)
    assert shape == (4, 8)
    assert places[ALL_STAGES.index("1-4")] == (3, 0)
    assert places[ALL_STAGES.index("8-1")] == (0, 7)
    assert len(set(places)) == 32
    places, shape = _grid(["1-1", "1-2", "2-1"])
    assert len(set(places)) == 3
    assert all(row < shape[0] and column < shape[1] for row, column in places)
    assert _grid(["game"])[1] == (1, 1)


def test_a_take_is_filmed_as_it_was_played(agent: Agent) -> None:
    take = best_take(agent, CPU.view, "1-1", tries=3, seed=1, max_decisions=30, threads=1)
    assert 0 < len(take.actions) <= 30
    assert not take.cleared
    assert take.progress > 0
    frames = [frame.copy() for frame in montage_frames(CPU.view, [take, take], threads=1)]
    assert len(frames) == 2 * len(take.actions) + LINGER_S * 30
    height = TILE_HEIGHT + LABEL_HEIGHT
    assert frames[0].shape == (height, 2 * TILE_WIDTH, 3) or frames[0].shape == (2 * height, TILE_WIDTH, 3)
    # Two environments that press the same see the same.
    tiles = np.split(frames[-1], 2, axis=1 if frames[0].shape[0] == height else 0)
    assert (tiles[0] == tiles[1]).all()
    assert (frames[0] != frames[-1]).any()


@pytest.mark.parametrize("skip", [1, 3])
def test_it_has_half_the_frames_of_the_game_whatever_the_frame_skip(skip: int) -> None:
    view, take = replace(CPU.view, frame_skip=skip), Take("1-1", [3] * 12, False, 0)
    assert sum(1 for _ in montage_frames(view, [take], threads=1)) == 12 * skip // 2 + LINGER_S * 30


def test_an_episode_stands_still_when_it_is_over(agent: Agent) -> None:
    short, long = Take("1-1", [3] * 4, False, 0), Take("1-2", [3] * 12, False, 0)
    frames = [frame.copy() for frame in montage_frames(CPU.view, [short, long], threads=1)]
    left = [
        frame[:, :TILE_WIDTH] if frame.shape[1] > TILE_WIDTH else frame[: frame.shape[0] // 2]
        for frame in frames
    ]
    assert all((frame == left[8]).all() for frame in left[8:])
    assert (left[8] != left[2]).any()
    assert (frames[8] != frames[20]).any()


def test_the_film_is_written_and_what_it_shows_is_told(agent: Agent, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    takes = record_montage(
        agent, ["1-1", "2-2"], tmp_path / "grid.mp4", tries=2, max_decisions=10, threads=1,
        on_search=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert [take.stage for take in takes] == ["1-1", "2-2"]
    assert told == [(1, 2), (2, 2)]
    assert len(read_video(tmp_path / "grid.mp4")) >= 20
