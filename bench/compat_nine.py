"""Records gym-super-mario-bros 9, for tests/compat/test_nine.py to compare ours with.

    python3.13 -m venv nine && nine/bin/pip install gym-super-mario-bros==9.1.0
    nine/bin/python bench/compat_nine.py tests/compat/nine.json

Runs on the original alone: it needs no warpzone there.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

TARGETS = ((1, 1), (1, 2), (2, 2), (4, 4), None)
STEPS = 400
BUTTONS = (128, 129, 130, 131, 131, 131, 1, 64, 0, 32)
HELD = 6
"""Steps for which a choice of buttons is held."""

AT_ONCE = 20
"""Steps of a digest."""


def digests(make: Any, target: tuple[int, int] | None) -> list[str]:
    """Of a tape of random buttons: info with its types, reward, ends, RAM and pixels, some steps in each digest."""
    env = make(target=target)
    chooser = random.Random(str(target))
    found = []
    digest = hashlib.sha256()

    def note(frame: Any, *values: Any) -> None:
        *ends, info = values
        told = [(name, type(value).__name__, value) for name, value in sorted(info.items())]
        digest.update(json.dumps([ends, told], sort_keys=True).encode())
        digest.update(env.ram.tobytes() + frame.tobytes())

    note(*env.reset(seed=1))
    action = 0
    for step in range(STEPS):
        if step % HELD == 0:
            action = chooser.choice(BUTTONS)
        given = env.step(action)
        note(*given)
        if given[2] or given[3]:
            note(*env.reset())
        if step % AT_ONCE == AT_ONCE - 1:
            found.append(digest.hexdigest()[:16])
    env.close()
    return found


def main(path: str) -> None:
    """Record every target."""
    from importlib.metadata import version

    from gym_super_mario_bros import SuperMarioBrosEnv

    tapes = {str(target): digests(SuperMarioBrosEnv, target) for target in TARGETS}
    versions = {name: version(name) for name in ("gym-super-mario-bros", "nes-py")}
    Path(path).write_text(json.dumps({"versions": versions, "tapes": tapes}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
