"""Random streams of environments: one 64-bit seed each, the same on every backend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpzone.errors import ConfigError

MASK = 0xFFFFFFFFFFFFFFFF


def spread_seeds(seed: int | Sequence[int | None], num_envs: int) -> NDArray[np.uint64]:
    """One seed per environment, from one for all or from a sequence."""
    if isinstance(seed, int | np.integer):
        # Neighbouring seeds must not give neighbouring environments the same stream.
        first = int(seed) * 0xD1342543DE82EF95
        seeds = [first + (i + 1) * 0x2545F4914F6CDD1D for i in range(num_envs)]
    else:
        if len(seed) != num_envs:
            raise ConfigError(f"Give one seed, or one for each of the {num_envs} environments.")
        seeds = [int(s or 0) for s in seed]
    return np.array([s & MASK for s in seeds], np.uint64)
