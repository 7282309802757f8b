"""Videos have the frames that were given; the panel shows what the policy computed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from tests.videos import read_video
from warpzone.errors import ConfigError
from warpzone.watch.overlay import BAR_LEFT, LINE_HEIGHT, MARGIN, PANEL_WIDTH, draw_text, with_panel
from warpzone.watch.video import Frame, write_video


def clip(count: int = 12, height: int = 48, width: int = 64) -> list[Frame]:
    frames = np.zeros((count, height, width, 3), np.uint8)
    for n in range(count):
        frames[n, :, : 4 * n] = (200, 40, 40)
    return list(frames)


def test_an_mp4_has_every_frame_at_sixty_a_second(tmp_path: Path) -> None:
    path = write_video(iter(clip()), tmp_path / "videos" / "a.mp4", scale=2)
    frames = read_video(path)
    assert len(frames) == 12
    assert frames[0].shape == (96, 128, 3)
    assert np.abs(frames[6][:, :40].astype(int) - (200, 40, 40)).mean() < 12
    with av.open(str(path)) as container:
        assert container.streams.video[0].average_rate == 60
    assert [p.name for p in path.parent.iterdir()] == ["a.mp4"]


def test_odd_sides_are_padded(tmp_path: Path) -> None:
    path = write_video(clip(3, height=31, width=33), tmp_path / "a.mp4", scale=1)
    assert read_video(path)[0].shape == (32, 34, 3)


def test_a_gif_plays_at_the_same_speed(tmp_path: Path) -> None:
    with Image.open(write_video(clip(12), tmp_path / "a.gif")) as gif:
        assert gif.n_frames == 6
        assert gif.info["duration"] in (30, 33)


@pytest.mark.parametrize(
    ("frames", "name"), [([], "a.mp4"), ([np.zeros((4, 4))], "a.mp4"), (clip(2), "a.avi")]
)
def test_what_is_no_video_is_refused(tmp_path: Path, frames: Any, name: str) -> None:
    with pytest.raises(ConfigError):
        write_video(frames, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_panel_shows_each_probability_as_a_bar() -> None:
    frame = np.zeros((240, 256, 3), np.uint8)
    shown = with_panel(
        frame, probabilities=[0.0, 0.25, 0.75], action_names=["noop", "right", "right+A"], chosen=2,
        values={"value": 1.25, "stage": "1-1"},
    )  # fmt: skip
    assert shown.shape == (240, 256 + PANEL_WIDTH, 3)
    bars = shown[MARGIN : MARGIN + 3 * LINE_HEIGHT : LINE_HEIGHT, 256 + BAR_LEFT :]
    whole = PANEL_WIDTH - BAR_LEFT - MARGIN
    assert (bars > 85).any(axis=-1).sum(axis=1).tolist() == [0, round(0.25 * whole), round(0.75 * whole)]
    assert bars[2, 0].tolist() > bars[1, 0].tolist()  # the chosen action is bright
    assert (shown[MARGIN + 4 * LINE_HEIGHT :, 256:] > 85).any()  # the values below


def test_text_is_clipped_to_the_frame() -> None:
    frame = np.zeros((16, 8, 3), np.uint8)
    draw_text(frame, "LONG TEXT", 1, 1)
    draw_text(frame, "BELOW", 0, 16)
    assert frame[:10].any()
    assert not frame[10:].any()


def test_an_mp4_takes_less_time_to_write_than_to_watch(tmp_path: Path) -> None:
    frames = [np.full((240, 368, 3), shade, np.uint8) for shade in range(120)]
    took = []
    for _ in range(3):  # others may use half of the core
        began = time.process_time()
        write_video(frames, tmp_path / "x.mp4", fps=60, scale=2)
        took.append(time.process_time() - began)
    assert min(took) < len(frames) / 60
    assert read_video(tmp_path / "x.mp4")[-1].shape == (480, 736, 3)


def test_a_missing_video_package_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ConfigError, match="needs PyAV, which is not installed"):
        write_video([np.zeros((8, 8, 3), np.uint8)], tmp_path / "a.mp4")
