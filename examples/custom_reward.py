"""A custom reward: coins and speed instead of distance.

python examples/custom_reward.py --updates 50
warpzone train --run-name coins --stages 1-1 --reward-function examples/custom_reward.py:coins_and_speed
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

import warpzone


def coins_and_speed(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rewards [N] from the telemetry before and after a decision, arrays [N] by the names that `info` has."""
    coins = (after["coins"] - before["coins"]) % 100  # the counter goes from 99 to 0
    moved = np.clip(after["x_pos"] - before["x_pos"], -20, 20)
    cleared = (after["flag_get"] != 0) & (before["flag_get"] == 0)
    return 0.2 * coins + 0.02 * moved + 1.0 * cleared - 1.0 * after["died"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=50)
    outcome = warpzone.train(
        "1-1",
        preset="cpu",
        device="cpu",
        run_name="coins",
        reward_function=coins_and_speed,
        total_updates=parser.parse_args().updates,
    )
    print(f"{outcome.folder}: {outcome.progress.global_step} decisions, {outcome.reason}")


if __name__ == "__main__":
    main()
