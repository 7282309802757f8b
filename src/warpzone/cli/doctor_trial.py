"""One stability trial: make environments, reset, step and close them, and print how long each took.

`python -m warpzone.cli.doctor_trial SETTINGS`, with the settings of `TrialSettings` as JSON; one JSON line a trial.
A process of its own, so that whoever runs it can limit its time and end it, whatever it does.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig


@dataclass(frozen=True)
class TrialSettings:
    """What a trial makes."""

    backend: str = "native"
    mode: str = "sync"
    num_envs: int = 8
    steps: int = 4
    prewarm_count: int = 0
    seed: int = 0
    diagnostics: str = ""
    start_method: str = "auto"
    repeats: int = 1
    """Trials in this process, one after the other."""


def run_trial(settings: TrialSettings) -> dict[str, Any]:
    """One trial; the seconds of its parts and what the environments reported."""
    # Here, so that `warpzone doctor` itself runs where the engine can't be imported.
    from warpzone.envs.nes_py.vector import BackendVectorEnv
    from warpzone.envs.vector import MarioVectorEnv

    began = time.perf_counter()
    envs: Any
    if settings.backend == "native":
        envs = MarioVectorEnv(
            settings.num_envs, "1-1", frame_stack=1, autoreset_mode="same_step", seed=settings.seed
        )
    else:
        backend = BackendConfig(
            backend="nes-py", async_env=settings.mode == "async", strict_env=True, env_retries=0,
            parent_prewarm=settings.prewarm_count > 0, parent_prewarm_all=settings.prewarm_count > 1,
            env_start_method=settings.start_method, env_diagnostics_dir=settings.diagnostics,  # type: ignore[arg-type]
        )  # fmt: skip
        envs = BackendVectorEnv(
            settings.num_envs, ["1-1"], view=ViewConfig(frame_stack=1), backend=backend, seed=settings.seed,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )  # fmt: skip
    made = time.perf_counter()
    try:
        _, info = envs.reset(seed=settings.seed)
        reset = time.perf_counter()
        start_x = info["x_pos"].tolist()
        for _ in range(settings.steps):
            _, _, _, _, info = envs.step(np.full(settings.num_envs, 3))
        stepped = time.perf_counter()
    finally:
        envs.close()
    closed = time.perf_counter()
    if min(info["x_pos"]) <= max(start_x):
        raise RuntimeError(f"running right moved nobody: x was {start_x}, is {info['x_pos'].tolist()}")
    return {
        "construct_s": made - began,
        "reset_s": reset - made,
        "step_s": (stepped - reset) / max(1, settings.steps),
        "close_s": closed - stepped,
    }


def main() -> int:
    settings = TrialSettings(**json.loads(sys.argv[1]))
    for repeat in range(settings.repeats):
        result = run_trial(replace(settings, seed=settings.seed + repeat))
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
