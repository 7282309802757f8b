"""Confidence intervals of clear rates."""

from __future__ import annotations

import math

Z95 = 1.959964
"""Standard deviations of a normal distribution that hold 95 % of it."""


def wilson(clears: int, episodes: int) -> tuple[float, float]:
    """The Wilson score interval at 95 % for a rate of `clears` in `episodes`."""
    if episodes == 0:
        return 0.0, 1.0
    rate, spread = clears / episodes, Z95**2 / episodes
    middle = (rate + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(rate * (1 - rate) / episodes + spread / (4 * episodes))
    # Rounding must not put the rate itself outside.
    return max(0.0, min(rate, middle - half)), min(1.0, max(rate, middle + half))


def clears_needed(rate: float, episodes: int) -> int:
    """The fewest clears whose interval lies above `rate`; more than `episodes` if there is no such number."""
    return next((k for k in range(episodes + 1) if wilson(k, episodes)[0] >= rate), episodes + 1)
