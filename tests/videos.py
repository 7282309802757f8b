"""Reading back what was recorded."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from warpzone.watch.video import Frame


def read_video(path: Path) -> list[Frame]:
    """All frames of a video."""
    with av.open(str(path)) as container:
        frames = container.decode(video=0)
        return [frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False) for frame in frames]
