"""Levels as frames and letters, as the game builds them."""

from __future__ import annotations

import numpy as np
import pytest

import warpzone
from warpzone import levels
from warpzone.levels import Enemy, EnemyKind, Level, Object, ObjectKind

FLAT = Level(
    [Object(ObjectKind.PIPE, 20, row=9, size=1), Object(ObjectKind.HOLE, 26, size=2), Object(ObjectKind.FLAGPOLE, 40)],
    [Enemy(EnemyKind.GOOMBA, 18, row=11)],
)  # fmt: skip


def test_letters_show_what_was_built() -> None:
    rows = levels.text(FLAT).splitlines()
    assert len(rows) == 13
    assert rows[9][20:22] == rows[10][20:22] == "||"
    assert rows[11][25:30] == "#   #"
    assert rows[10][18] == "e"
    assert rows[4][40] == "P"


def test_a_drawing_is_the_games_own_screen() -> None:
    drawn = levels.decode(warpzone.rom(), "1-1").draw()
    assert drawn.shape == (208, 224 * 16, 3)
    assert drawn.dtype == np.uint8
    with_mario = warpzone.MarioEnv("1-1", render_mode="rgb_array")
    with_mario.reset(seed=0)
    screen = with_mario.render()
    with_mario.close()
    assert screen is not None
    # Right of Mario, above the coin that blinks, the two are the same to the pixel.
    assert np.array_equal(drawn[:80, 80:256], screen[32:112, 80:256])
    assert np.array_equal(drawn[176:, 80:256], screen[208:, 80:256])
    # Pillars of pixels from strips that were put together do not jump: the floor's pattern repeats each block.
    floor = drawn[176:192]
    assert np.array_equal(floor[:, :16], floor[:, 16 * 60 : 16 * 61])


@pytest.mark.parametrize("stage", ["1-2", "3-3", "4-4", "8-3"])
def test_drawings_reach_the_end_of_the_area(stage: str) -> None:
    level = levels.decode(warpzone.rom(), stage)
    grid = levels.blocks(level)
    assert grid.shape == (13, level.columns)
    assert grid[:, -1].any()
    assert level.draw()[:, -1].any()


def test_a_level_of_one_page_is_drawn() -> None:
    level = Level([Object(ObjectKind.PIPE, 5, row=8, size=2)])
    assert level.text().splitlines()[8:] == ["     ||"] * 3 + ["#" * 16] * 2
    assert level.draw()[:, ::8].any(axis=(0, 2)).all()


def test_rooms_without_time_of_their_own_are_drawn() -> None:
    level = levels.decode(warpzone.rom(), 41)
    assert level.header.timer == 0
    assert "|" in level.text()
