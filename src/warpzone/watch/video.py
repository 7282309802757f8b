"""Videos: RGB frames to MP4 or GIF, enlarged without blur."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpzone.errors import ConfigError

Frame = npt.NDArray[np.uint8]
"""uint8 [height, width, 3]."""

NES_FPS = 60
_GIF_FPS = 30


def write_video(frames: Iterable[Frame], path: Path, *, fps: int = NES_FPS, scale: int = 2) -> Path:
    """Write frames to `path` (.mp4 or .gif) and return it.

    Frames are consumed one by one, so an episode of any length fits in memory.
    """
    if path.suffix not in (".mp4", ".gif"):
        raise ConfigError(f"{path} is not a video name; end it in .mp4 or .gif")
    package, name = ("av", "PyAV") if path.suffix == ".mp4" else ("PIL", "Pillow")
    if not is_installed(package):
        raise ConfigError(f"{path} needs {name}, which is not installed: pip install 'warpzone[train]'.")
    if fps < 1 or scale < 1:
        raise ConfigError("a video needs a frame rate and a scale of at least 1")
    stream = iter(frames)
    first = next(stream, None)
    if first is None:
        raise ConfigError(f"there are no frames to write to {path}")
    checked = (_checked(frame, first.shape) for frame in itertools.chain([first], stream))
    path.parent.mkdir(parents=True, exist_ok=True)
    (_write_mp4 if path.suffix == ".mp4" else _write_gif)(checked, path, fps, scale)
    return path


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def _write_mp4(frames: Iterator[Frame], path: Path, fps: int, scale: int) -> None:
    import av

    with _renamed_when_done(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream: Any = None
        for pixels in frames:
            even = _even(pixels, scale)
            height, width = scale * even.shape[0], scale * even.shape[1]
            if stream is None:
                stream = _add_stream(container, fps, height, width)
            # Enlarged by the conversion to the codec's colours, which is much quicker than as an array.
            frame = av.VideoFrame.from_ndarray(even, format="rgb24")
            frame = frame.reformat(width, height, stream.pix_fmt, interpolation="POINT")
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def _add_stream(container: Any, fps: int, height: int, width: int) -> Any:
    import av

    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    stream = container.add_stream(codec, rate=Fraction(fps))
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    if codec == "libx264":
        stream.options = {"crf": "18", "preset": "veryfast"}
    else:
        stream.bit_rate = 4_000_000
    return stream


def _write_gif(frames: Iterator[Frame], path: Path, fps: int, scale: int) -> None:
    from PIL import Image

    # GIF counts in hundredths of a second and players slow down below two of them.
    every = max(1, round(fps / _GIF_FPS))
    shown = itertools.islice(frames, 0, None, every)
    enlarged = (frame.repeat(scale, axis=0).repeat(scale, axis=1) for frame in shown)
    images = (Image.fromarray(frame).quantize(64) for frame in enlarged)
    with _renamed_when_done(path) as temporary:
        next(images).save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=images,
            duration=round(1000 * every / fps),
            loop=0,
        )


@contextmanager
def _renamed_when_done(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, so that a killed recording leaves no half video under the real one."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _checked(frame: Frame, shape: tuple[int, ...]) -> Frame:
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or frame.shape != shape:
        raise ConfigError(
            f"video frames are uint8 [height, width, 3] and all of one shape, not {frame.dtype} {frame.shape}"
        )
    return frame


def _even(pixels: Frame, scale: int) -> Frame:
    """Video codecs store colour at half resolution and need even sides."""
    height, width = pixels.shape[:2]
    if scale % 2 and (height % 2 or width % 2):
        pixels = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(pixels)
