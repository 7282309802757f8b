"""Videos have the frames that were given, and a missing library costs quality, not the run."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpzone.errors import ConfigError
from warpzone.watch import video
from warpzone.watch.overlay import PANEL_WIDTH, draw_text, with_panel
from warpzone.watch.video import Frame, png_bytes, read_video, write_video


def clip(count: int = 12, height: int = 48, width: int = 64) -> list[Frame]:
    frames = np.zeros((count, height, width, 3), np.uint8)
    for n in range(count):
        frames[n, :, : 4 * n] = (200, 40, 40)
    return list(frames)


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    real = builtins.__import__

    def fake(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] in modules:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fake)
    monkeypatch.setattr(video, "_has_warned", False)


def test_an_mp4_has_every_frame_at_sixty_a_second(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    path = write_video(iter(clip()), tmp_path / "videos" / "a.mp4", scale=2)
    frames = read_video(path)
    assert len(frames) == 12
    assert frames[0].shape == (96, 128, 3)
    assert np.abs(frames[6][:, :40].astype(int) - (200, 40, 40)).mean() < 12
    with av.open(str(path)) as container:
        assert container.streams.video[0].average_rate == 60
    assert [p.name for p in path.parent.iterdir()] == ["a.mp4"]


def test_odd_sides_are_padded(tmp_path: Path) -> None:
    pytest.importorskip("av")
    path = write_video(clip(3, height=31, width=33), tmp_path / "a.mp4", scale=1)
    assert read_video(path)[0].shape == (32, 34, 3)


def test_a_gif_plays_at_the_same_speed(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    with image.open(write_video(clip(12), tmp_path / "a.gif")) as gif:
        assert gif.n_frames == 6
        assert gif.info["duration"] in (30, 33)


def test_without_pyav_a_gif_and_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "av")
    assert write_video(clip(), tmp_path / "a.mp4").name == "a.gif"
    assert write_video(clip(), tmp_path / "b.mp4").name == "b.gif"
    assert capsys.readouterr().out.count("[train][warn]") == 1


def test_without_any_library_png_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "av", "PIL")
    folder = write_video(clip(3), tmp_path / "a.mp4")
    assert sorted(p.name for p in folder.iterdir()) == ["000000.png", "000001.png", "000002.png"]


def test_a_png_has_the_pixels(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    frame = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(png_bytes(frame))
    with image.open(tmp_path / "a.png") as read:
        assert np.array_equal(np.asarray(read), frame)


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
    lengths = [int((shown[4 + 8 * a, 256 + 56 :] > 85).any(axis=-1).sum()) for a in range(3)]
    assert lengths == [0, 13, 39]


def test_text_outside_the_frame_is_cut_off() -> None:
    frame = np.zeros((8, 8, 3), np.uint8)
    draw_text(frame, "LONG TEXT", 1, 1)
    draw_text(frame, "BELOW", 0, 7)
    assert frame.any()
    assert not frame[6:].any()
