"""`warpzone bench env`: frames a second of the native engine against nes-py, in turn within one run."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from warpzone.cli.bench_results import in_turn, rate, ratio, spread, table, write_json
from warpzone.cli.flags import parse
from warpzone.cli.info import made
from warpzone.cli.settings import DryRun
from warpzone.engine import Machine
from warpzone.engine.rom import rom, rom_path
from warpzone.envs.config import MAX_ENVS, thread_count
from warpzone.envs.nes_py.patches import patch_nes_py, quiet_gym
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError

BASE = "nes-py, every frame drawn"
HELD, GATE_FRAMES = 30, 240
START = [0] * 40 + [8] * 3 + [0] * 60
RUN_AND_JUMP = [0x82, 0x82, 0x83, 0x82, 0x81, 0x83]
GAME_STATE = [0x000E, 0x001D, 0x006D, 0x0086, 0x00CE, 0x075A, 0x075C, 0x075F, 0x0770, *range(0x07DD, 0x07FB)]
"""Addresses that say where the player is and how the game stands."""


@dataclass(frozen=True)
class BenchEnvConfig(DryRun):
    """Time the engine against nes-py: first both must play the same game, then they are timed in turn."""

    num_envs: int = 64
    """Environments of the vector."""
    seconds: float = 1.0
    """Seconds each side is timed per round."""
    rounds: int = 5
    """Number of rounds; each times every side once."""
    threads: int = 0
    """Threads of the wide vector (0 = one per core)."""
    memory: bool = True
    """Measure the memory of 1,024 environments too."""
    out: Path | None = None
    """JSON file for the results."""
    as_json: bool = False
    """Print JSON instead of a table."""

    def __post_init__(self) -> None:
        if self.num_envs < 1 or self.rounds < 1 or not self.seconds > 0:
            raise ConfigError("--num-envs and --rounds must be at least 1, and --seconds more than 0.")


def nes_py_console() -> Any:
    """nes-py's emulator with the game in it."""
    patch_nes_py()
    with quiet_gym():
        from nes_py import NESEnv
    env = NESEnv(str(rom_path()))
    env.reset()
    return env


def scripted(frames: int) -> list[int]:
    """Starts the game and runs to the right with jumps."""
    buttons = list(START)
    while len(buttons) < frames:
        buttons += [RUN_AND_JUMP[len(buttons) // HELD % len(RUN_AND_JUMP)]] * HELD
    return buttons[:frames]


def check_same_game() -> None:
    """nes-py's step ends in mid-frame: what it says is what the engine says before or after the frame."""
    theirs, ours = nes_py_console(), Machine(rom())
    ours.step(0, render=False)
    before = ours.ram[GAME_STATE].copy()
    for k, held in enumerate(scripted(GATE_FRAMES)):
        theirs._frame_advance(held)
        ours.step(held, render=False)
        after, seen = ours.ram[GAME_STATE].copy(), np.asarray(theirs.ram)[GAME_STATE]
        if not ((seen == before) | (seen == after)).all():
            raise RuntimeError(f"nes-py and the engine do not play the same game: they part in frame {k}")
        before = after
    theirs.close()
    if ours.ram[0x0770] != 1:
        raise RuntimeError("the script did not start the game")


def check_same_bytes(num_envs: int, threads: int) -> None:
    """One thread and all of them give the same observations."""
    seen = []
    for count in (1, threads):
        envs = MarioVectorEnv(num_envs, "1-1", threads=count, seed=0)
        dice = np.random.default_rng(0)
        observations, _ = envs.reset(seed=0)
        for _ in range(20):
            observations = envs.step(dice.integers(7, size=num_envs))[0]
        seen.append(observations.copy())
        envs.close()
    if not np.array_equal(seen[0], seen[1]):
        raise RuntimeError(f"1 and {threads} threads give different observations")


def nes_py_side() -> Callable[[], int]:
    env, script = nes_py_console(), cycle(scripted(2000))

    def play() -> int:
        for held in islice(script, 20):
            env._frame_advance(held)
        return 20

    return play


def machine_side(draw: bool) -> Callable[[], int]:
    """The start of the stage again and again, as an agent would play it."""
    machine = Machine(rom())
    for held in START:
        machine.step(held, render=False)
    beginning, buttons = machine.save(), cycle(RUN_AND_JUMP)

    def play() -> int:
        machine.load(beginning)
        for held in islice(buttons, 60):
            machine.step(held, frames=HELD, render=draw)
        return 60 * HELD

    return play


def vector_side(num_envs: int, threads: int, **options: Any) -> Callable[[], int]:
    """Random play, so that episodes end and begin again; rewards and infos included."""
    envs = MarioVectorEnv(num_envs, "1-1", threads=threads, seed=0, **options)
    dice = np.random.default_rng(0)
    plan: NDArray[np.int64] = dice.integers(7, size=(256, num_envs))
    plan[dice.random(plan.shape) < 0.5] = 4
    envs.reset(seed=0)
    actions = cycle(plan)

    def play() -> int:
        for chosen in islice(actions, 4):
            envs.step(chosen)
        return 4 * num_envs * envs.view.frame_skip

    return play


def sides(config: BenchEnvConfig) -> dict[str, Callable[[], int]]:
    n, wide = config.num_envs, thread_count(config.threads, config.num_envs)
    found: dict[str, Callable[[], int]] = {
        BASE: nes_py_side(),
        "Machine.step, nothing drawn": machine_side(draw=False),
        "Machine.step, every frame drawn": machine_side(draw=True),
        f"{n} environments, 1 thread": vector_side(n, 1),
        f"{n} environments, 1 thread, max of two frames": vector_side(n, 1, max_pool=True),
    }
    if wide > 1:
        found[f"{n} environments, {wide} threads"] = vector_side(n, wide)
        found[f"{n} environments, {wide} threads, max of two frames"] = vector_side(n, wide, max_pool=True)
    return found


def memory_of(num_envs: int = 1024) -> float:
    """KB of resident memory that an environment with its observation takes."""
    import psutil

    process = psutil.Process()
    before = process.memory_info().rss
    envs = MarioVectorEnv(num_envs, "1-1", threads=1)
    envs.reset(seed=0)
    envs.step(np.ones(num_envs, np.int64))
    taken = int(process.memory_info().rss) - int(before)
    envs.close()
    return taken / num_envs / 1000


def compare(config: BenchEnvConfig, console: Console) -> dict[str, Any]:
    """Check, then measure: frames a second of every side in every round, and ratios to nes-py round by round."""
    console.print("[benchmark] do both play the same game?", markup=False)
    check_same_game()
    check_same_bytes(config.num_envs, thread_count(config.threads, config.num_envs))
    kb = memory_of() if config.memory else None
    measured = {name: partial(rate, play, config.seconds) for name, play in sides(config).items()}
    rates = in_turn(measured, config.rounds, console)
    return {
        **made(),
        "cores": thread_count(0, MAX_ENVS),
        "load_average": os.getloadavg()[0],
        "settings": {k: v for k, v in asdict(config).items() if k not in ("out", "as_json", "dry_run")},
        "frames_per_s": rates,
        "times_nes_py": {name: ratio(values, rates[BASE]) for name, values in rates.items()},
        "kb_per_environment": kb,
    }


def show(results: dict[str, Any], console: Console) -> None:
    rows = []
    for name, values in results["frames_per_s"].items():
        frames = statistics.median(values)
        decisions = f"{frames / 4:,.0f}" if "environments" in name else ""
        times = "1" if name == BASE else spread(results["times_nes_py"][name], ",.1f")
        rows.append((name, f"{frames:,.0f}", decisions, times))
    title = f"{results['hardware']}, load average {results['load_average']:.1f}"
    console.print(table(title, ("what", "frames/s", "decisions/s", "times nes-py (least - most)"), rows))
    if results["kb_per_environment"] is not None:
        console.print(f"memory: {results['kb_per_environment']:,.0f} KB for each of 1,024 environments")


SETTINGS = {"": BenchEnvConfig}


def run(argv: list[str]) -> int:
    config = parse(BenchEnvConfig(), argv, "warpzone bench env")
    if config.dry_run:
        print(json.dumps(asdict(config), indent=2, default=str))
        return 0
    if find_spec("nes_py") is None:
        raise ConfigError(
            "bench env times the engine against nes-py: pip install nes-py gym-super-mario-bros."
        )
    console = Console(stderr=config.as_json)
    results = compare(config, console)
    if config.as_json:
        print(json.dumps(results, indent=2))
    else:
        show(results, console)
    write_json(config.out, "env.json", results, console)
    return 0
