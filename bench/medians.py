"""The median of a benchmark's rounds, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def median_interval(values: Sequence[float]) -> dict[str, float]:
    """The median and the 95 % interval of it, by resampling the rounds."""
    dice = np.random.default_rng(0)
    medians = np.median(dice.choice(values, (2000, len(values))), axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return {"median": float(np.median(values)), "low": float(low), "high": float(high)}
