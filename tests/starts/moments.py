"""Moments of trails that only have a snapshot."""

from __future__ import annotations

import numpy as np

from warpzone.starts.trails import Moment


def bare(snapshot: bytes, buttons: int = 0) -> Moment:
    return Moment(snapshot, (np.full((1, 2, 2), snapshot[0], np.uint8),), buttons)
