"""The step-by-step preprocessing makes the numbers of the engine's fused one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpzone.envs.config import HUD_ROWS, ViewConfig
from warpzone.envs.nes_py.preprocessing import Preprocessor, area_weights, luma
from warpzone.envs.vector import MarioVectorEnv


@pytest.mark.parametrize(
    "view",
    [
        ViewConfig(frame_stack=1),
        ViewConfig(frame_stack=1, size=(26, 32), observation="red", crop_hud=True),
        ViewConfig(frame_stack=1, size=(60, 64), observation="rgb"),
        ViewConfig(frame_stack=1, size=(240, 256)),
        ViewConfig(frame_stack=1, size=(37, 91)),
    ],
)
def test_frames_are_the_engines(view: ViewConfig) -> None:
    envs = MarioVectorEnv(
        1, "1-1", frame_stack=1, size=view.size, observation=view.observation, crop_hud=view.crop_hud
    )
    envs.reset(seed=0)
    for _ in range(6):
        observations, *_ = envs.step(np.array([4]))
        np.testing.assert_array_equal(Preprocessor(view)(envs.screen(0)), observations[0])


def test_the_brighter_of_two_screens_is_taken_pixel_by_pixel() -> None:
    first, second = np.zeros((2, 240, 256, 3), np.uint8)
    first[:120], second[120:] = 200, 100
    frame = Preprocessor(ViewConfig(size=(2, 1)))(first, second)
    assert frame[0, :, 0].tolist() == [200, 100]


def test_the_hud_is_cropped() -> None:
    screen = np.zeros((240, 256, 3), np.uint8)
    screen[:HUD_ROWS] = 255
    assert Preprocessor(ViewConfig(size=(13, 16), crop_hud=True))(screen).max() == 0


@given(st.integers(1, 256), st.data())
@settings(deadline=None, max_examples=60)
def test_every_input_cell_is_spread_completely(size_in: int, data: st.DataObject) -> None:
    size_out = data.draw(st.integers(1, size_in))
    weights = area_weights(size_in, size_out)
    assert (weights == weights.round()).all()
    assert len(set(weights.sum(0).tolist())) == 1
    assert len(set(weights.sum(1).tolist())) == 1


def test_luma_of_white_is_white() -> None:
    assert luma(np.full((1, 1, 3), 255, np.uint8)).tolist() == [[255]]
