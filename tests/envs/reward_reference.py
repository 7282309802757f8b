"""Rewards in NumPy, term by term: the slow reference of the engine's (native/smb/reward.*)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.rewards import RewardShaper
from warpzone.envs.telemetry import died

COINS_WRAP = 100
"""The game's counter of coins goes from 99 to 0."""
Floats = NDArray[np.float32]


def reference_rewards(
    shaper: RewardShaper, before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]
) -> tuple[Floats, dict[str, Floats]]:
    """Rewards [N] and their built-in terms, at the shaper's present scale; the terms add up to the reward."""
    c = shaper.config
    key = "x_pos" if c.reward_signed_distance else "progress"
    dx = after[key] - before[key]
    # Signed, a jump by more than the cap is a new room or a loop, not a movement.
    leap = np.abs(dx) > shaper.cap
    paid = np.where(leap, 0, dx) if c.reward_signed_distance else np.clip(dx, 0, shaper.cap)
    scale = shaper.scale()
    flag = (after["flag_get"] != 0) & (before["flag_get"] == 0)
    ticks = np.minimum(after["time"] - before["time"], 0)
    points = np.maximum(after["score"] - before["score"], 0)
    more = after["coins"] - before["coins"]
    coins = np.maximum(np.where(more < 0, more + COINS_WRAP, more), 0)

    def worth(amount: NDArray[Any], weight: float) -> Floats:
        return amount.astype(np.float32) * np.float32(weight * scale)

    terms: dict[str, Floats] = {
        "distance": worth(paid, c.reward_distance_weight),
        "score": worth(points, c.reward_score_weight),
        "flag": worth(flag, c.reward_flag),
        "death": worth(died(before, after), -c.reward_death),
        "time": worth(ticks, c.reward_time_weight),
        "maze": worth(after["wrong_turns"] - before["wrong_turns"], -c.reward_wrong_turn),
        "coin": worth(coins, c.reward_coin_weight),
    }
    total = np.zeros(len(dx), np.float32)
    for term in terms.values():
        total += term
    bound = np.float32(c.reward_clip * abs(scale) if c.reward_clip else np.inf)
    terms["clip"] = np.clip(total, -bound, bound) - total
    terms["custom"] = np.zeros_like(total)
    return total + terms["clip"], terms
