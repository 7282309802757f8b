"""Videos of the agent: RGB frames to MP4 or GIF, enlarged without blur, with the policy's outputs beside
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
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
_has_warned = False


def write_video(frames: Iterable[Frame], path: Path, *, fps: int = NES_FPS, scale: int = 2) -> Path:
    """Write frames to `path` (.mp4 or .gif) and return the path written.

    Without PyAV an MP4 becomes a GIF beside it, and without Pillow a folder of PNG files, with one warning.
    Frames are consumed one by one, so an episode of any length fits in memory.
    """
    if path.suffix not in (".mp4", ".gif"):
        raise ConfigError(f"{path} is not a video name; end it in .mp4 or .gif")
    if fps < 1 or scale < 1:
        raise ConfigError("a video needs a frame rate and a scale of at least 1")
    stream = iter(frames)
    first = next(stream, None)
    if first is None:
        raise ConfigError(f"there are no frames to write to {path}")
    enlarged = (_enlarge(frame, scale, first.shape) for frame in itertools.chain([first], stream))
    path.parent.mkdir(parents=True, exist_ok=True)
    return _writer_for(path)(enlarged, path, fps)


def read_video(path: Path) -> list[Frame]:
    """All frames of a video. For tests and short clips."""
    import av

    with av.open(str(path)) as container:
        frames = container.decode(video=0)
        return [frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False) for frame in frames]


Writer = Callable[[Iterator[Frame], Path, int], Path]


def _writer_for(path: Path) -> Writer:
    if path.suffix == ".mp4":
        if _can_import("av"):
            return _write_mp4
        _warn_once("PyAV is not installed: writing GIF instead of MP4")
    if _can_import("PIL"):
        return _write_gif
    _warn_once("neither PyAV nor Pillow is installed: writing PNG files instead of a video")
    return _write_png_files


def _write_mp4(frames: Iterator[Frame], path: Path, fps: int) -> Path:
    import av

    with _renamed_when_done(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream: Any = None
        for pixels in frames:
            if stream is None:
                stream = _add_stream(container, fps, pixels)
            frame = av.VideoFrame.from_ndarray(_even(pixels), format="rgb24")
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def _add_stream(container: Any, fps: int, pixels: Frame) -> Any:
    import av

    height, width = _even(pixels).shape[:2]
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    stream = container.add_stream(codec, rate=Fraction(fps))
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    if codec == "libx264":
        stream.options = {"crf": "18", "preset": "veryfast"}
    else:
        stream.bit_rate = 4_000_000
    return stream


def _write_gif(frames: Iterator[Frame], path: Path, fps: int) -> Path:
    from PIL import Image

    path = path.with_suffix(".gif")
    # GIF counts in hundredths of a second and players slow down below two of them.
    every = max(1, round(fps / _GIF_FPS))
    images = (Image.fromarray(frame).quantize(64) for frame in itertools.islice(frames, 0, None, every))
    with _renamed_when_done(path) as temporary:
        next(images).save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=images,
            duration=round(1000 * every / fps),
            loop=0,
        )
    return path


def _write_png_files(frames: Iterator[Frame], path: Path, fps: int) -> Path:
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for number, frame in enumerate(frames):
        (folder / f"{number:06d}.png").write_bytes(png_bytes(frame))
    return folder


def png_bytes(frame: Frame) -> bytes:
    """The frame as a PNG file, with nothing but the standard library."""
    import struct
    import zlib

    height, width = frame.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = frame.reshape(height, 3 * width)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(rows.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@contextmanager
def _renamed_when_done(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, so that a killed recording leaves no half video under the real one."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _enlarge(frame: Frame, scale: int, shape: tuple[int, ...]) -> Frame:
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or frame.shape != shape:
        raise ConfigError(
            f"video frames are uint8 [height, width, 3] and all of one shape, not {frame.dtype} {frame.shape}"
        )
    return frame.repeat(scale, axis=0).repeat(scale, axis=1)


def _even(pixels: Frame) -> Frame:
    """Video codecs store colour at half resolution and need even sides."""
    height, width = pixels.shape[:2]
    if height % 2 or width % 2:
        pixels = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(pixels)


def _can_import(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _warn_once(line: str) -> None:
    global _has_warned
    if not _has_warned:
        print(f"[train][warn] {line}")
    _has_warned = True
