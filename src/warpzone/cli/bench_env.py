"""`warpzone bench env`: the native engine against nes-py, in turn within one run."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from warpzone.cli.flags import parse
from warpzone.cli.info import processor
from warpzone.engine import Machine
from warpzone.engine.rom import rom, rom_path
from warpzone.envs.backends.patches import patch_nes_py, quiet_gym
from warpzone.envs.config import thread_count
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK

FRAME_SKIP = 4
RIGHT_RUN = 0x82
Measure = Callable[[float], float]
"""Runs for about so many seconds and gives frames a second."""


@dataclass(frozen=True)
class BenchEnvConfig:
    """Time the native engine and nes-py alternately; every ratio is to nes-py's raw frame rate in the same round."""

    rounds: int = 5
    """Times each side is measured."""
    seconds: float = 1.5
    """Length of one measurement."""
    num_envs: int = 64
    """Environments in the vector."""
    out: Path | None = None
    """Write the results as JSON to this file."""
    dry_run: bool = False
    """Print what would be measured and do nothing."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.seconds <= 0 or self.num_envs < 1:
            raise ConfigError("--rounds, --seconds and --num-envs must be positive.")


def timed(step: Callable[[], int], seconds: float) -> float:
    """Call `step`, which says how many frames it ran, for `seconds`; frames a second."""
    frames, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        frames += step()
    return frames / took


def nes_py_console() -> Any:
    with quiet_gym():
        patch_nes_py()
        from nes_py import NESEnv

    env = NESEnv(str(rom_path()))
    env.reset()
    for buttons, frames in ((0, 60), (8, 3), (0, 200)):
        for _ in range(frames):
            env._frame_advance(buttons)
    return env


def native_console() -> Machine:
    machine = Machine(rom())
    for buttons, frames in ((0, 61), (8, 3), (0, 200)):
        machine.step(buttons, frames, render=False)
    return machine


def same_play(frames: int = 300) -> bool:
    """Correctness first: on the same buttons both consoles must be at the same place in the game."""
    theirs, ours = nes_py_console(), native_console()
    rng = np.random.default_rng(0)
    for _ in range(frames // 30):
        buttons = int(rng.choice([0x80, RIGHT_RUN, 0x83, 0x81]))
        for _ in range(30):
            theirs._frame_advance(buttons)
        ours.step(buttons, 30, render=False)
        # Level, room and position; nes-py stops inside the frame, so a sub-pixel may be ahead.
        ram = theirs.ram
        if any(int(ram[at]) != int(ours.ram[at]) for at in (0x075F, 0x075C, 0x006D)):
            return False
        if abs(int(ram[0x86]) - int(ours.ram[0x86])) > 3:
            return False
    return True


def vector_measure(num_envs: int, threads: int, **options: Any) -> Measure:
    envs = MarioVectorEnv(num_envs, "1-1", threads=threads, seed=0, **options)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 7, (256, num_envs))
    at = 0

    def step() -> int:
        nonlocal at
        at = (at + 1) % len(actions)
        envs.step(actions[at])
        return FRAME_SKIP * num_envs

    for _ in range(8):
        step()
    return lambda seconds: timed(step, seconds)


def machine_measure(render: bool, **options: Any) -> Measure:
    machine = native_console()

    def step() -> int:
        machine.step(RIGHT_RUN, 100, render=render, **options)
        return 100

    step()
    return lambda seconds: timed(step, seconds)


def nes_py_measure() -> Measure:
    env = nes_py_console()

    def step() -> int:
        for _ in range(10):
            env._frame_advance(RIGHT_RUN)
        return 10

    return lambda seconds: timed(step, seconds)


def cases(num_envs: int) -> dict[str, Callable[[], Measure]]:
    """What is measured beside nes-py."""
    every = thread_count(0, num_envs)
    found: dict[str, Callable[[], Measure]] = {
        "Machine.step, nothing drawn": lambda: machine_measure(False),
        "Machine.step, nothing drawn, interpreted": lambda: machine_measure(False, translate=False),
        "Machine.step, every frame drawn": lambda: machine_measure(True),
        f"vector of {num_envs}, gray 84x84x4, 1 thread": lambda: vector_measure(num_envs, 1),
        f"vector of {num_envs}, max of two frames, 1 thread": lambda: vector_measure(
            num_envs, 1, max_pool=True
        ),
    }
    if every > 1:
        found[f"vector of {num_envs}, gray 84x84x4, {every} threads"] = lambda: vector_measure(
            num_envs, every
        )
    return found


def run(argv: list[str]) -> int:
    """Parse, check, measure and print; the exit code."""
    config = parse(BenchEnvConfig(), argv, "warpzone bench env", BenchEnvConfig.__doc__ or "", {})
    wanted = cases(config.num_envs)
    if config.dry_run:
        print(json.dumps({"cases": list(wanted), "rounds": config.rounds, "seconds": config.seconds}))
        return EXIT_OK
    console = Console()
    if not same_play():
        console.print(
            "[benchmark] the two consoles do not play the same game: nothing is timed", markup=False
        )
        return EXIT_FAILED
    reference = nes_py_measure()
    measures = {name: make() for name, make in wanted.items()}
    rates: dict[str, list[float]] = {name: [] for name in ("nes-py", *measures)}
    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("measuring", total=config.rounds * len(rates))
        for _ in range(config.rounds):
            rates["nes-py"].append(reference(config.seconds))
            bars.advance(task)
            for name, measure in measures.items():
                rates[name].append(measure(config.seconds))
                bars.advance(task)
    results = summary(rates)
    console.print(table(results))
    if config.out is not None:
        config.out.parent.mkdir(parents=True, exist_ok=True)
        config.out.write_text(json.dumps({"processor": processor(), "results": results}, indent=2) + "\n")
        console.print(f"[benchmark] wrote {config.out}", markup=False, soft_wrap=True)
    return EXIT_OK


def summary(rates: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Medians, and ratios to nes-py of the same round with their spread."""
    base = rates["nes-py"]
    results = {}
    for name, values in rates.items():
        ratios = sorted(v / b for v, b in zip(values, base, strict=True))
        results[name] = {
            "frames_per_s": statistics.median(values),
            "ratio": statistics.median(ratios),
            "ratio_low": ratios[0],
            "ratio_high": ratios[-1],
        }
    return results


def table(results: dict[str, dict[str, float]]) -> Table:
    shown = Table(title=f"frames a second, one run, {processor()}")
    for column in ("what", "frames/s", "decisions/s", "times nes-py", "from - to"):
        shown.add_column(column, justify="left" if column == "what" else "right")
    for name, r in results.items():
        decisions = f"{r['frames_per_s'] / FRAME_SKIP:,.0f}" if name.startswith("vector") else ""
        spread = f"{r['ratio_low']:.0f} - {r['ratio_high']:.0f}"
        shown.add_row(name, f"{r['frames_per_s']:,.0f}", decisions, f"{r['ratio']:.0f}", spread)
    return shown
