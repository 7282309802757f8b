"""Generated levels: that they start and run, how many have a solution, and how fast they play beside a stage.

python bench/levels.py [--seeds 10000] [--decisions 300] [--solved 100] [--difficulty 0.3] [--out FILE.json]

The soak plays random decisions on every seed, with difficulties from 0 to 1, and counts how episodes ended; an engine
that crashes or hangs ends the script. It also carries Mario through every level to its end and looks at all blocks that
the game has built: one that no area of the game has would be garbage on the screen. The share of levels
with a solution is found by search. The speed is that of stage 1-1 as a level against the plain stage, in turns.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

import warpzone
from warpzone import MarioVectorEnv, levels
from warpzone.agents.intervals import wilson
from warpzone.cli.bench_results import in_turn, ratio, write_json
from warpzone.envs.telemetry import ENDS
from warpzone.starts.level_check import DECISIONS, solve

GROUP = 50
"""Levels that are played beside each other."""
ROUNDS = 20


@dataclass(frozen=True)
class Config:
    seeds: int = 10_000
    """Levels of the soak."""
    decisions: int = 300
    """Random decisions on each of them."""
    solved: int = 100
    """Levels that are searched for a solution."""
    difficulty: float = 0.3
    """Difficulty of those."""
    out: Path | None = None
    """JSON file for the results."""


def soak(config: Config, console: Console) -> dict[str, Any]:
    """Play random decisions on every level; one environment for each, its own level, until the decisions are done."""
    rom, rng = warpzone.rom(), np.random.default_rng(0)
    ends: Counter[str] = Counter()
    styles: Counter[str] = Counter()
    known, strange = known_blocks(rom), []
    played = blocks_seen = 0
    for first in range(0, config.seeds, GROUP):
        seeds = range(first, min(first + GROUP, config.seeds))
        made = [levels.generate(seed, seed % 11 / 10, rom=rom) for seed in seeds]
        styles.update(level.type.name.lower() for level in made)
        for seed, level in zip(seeds, made, strict=True):
            grid = levels.blocks(level, rom)
            blocks_seen += grid.size
            if others := set(np.unique(grid).tolist()) - known:
                strange.append({"seed": seed, "blocks": sorted(others)})
                console.print(f"{level.name}: blocks that the game has nowhere: {sorted(others)}")
        envs = MarioVectorEnv(
            len(made), levels=made, size=(16, 16), frame_stack=1, autoreset_mode="same_step"
        )
        # Each level is entered once, by its own environment.
        for i in range(len(made)):
            envs.set_stage_weights([float(i == j) for j in range(len(made))])
            mask = np.arange(len(made)) == i
            envs.reset(options={"reset_mask": mask} if i else None)
        for _ in range(config.decisions):
            _, _, terminated, truncated, info = envs.step(rng.integers(0, 7, len(made)))
            over = terminated | truncated
            if over.any():
                ends.update(ENDS[end] for end in info["final_info"]["end"][over])
            played += len(made)
        envs.close()
        if first % (20 * GROUP) == 0:
            console.print(f"{first + len(made):,} levels, {dict(ends)}")
    return {
        "seeds": config.seeds, "decisions": played, "ends": dict(ends), "types": dict(styles),
        "blocks": blocks_seen, "levels_with_strange_blocks": strange,
    }  # fmt: skip


def known_blocks(rom: bytes) -> set[int]:
    """The blocks of the game's own areas."""
    known: set[int] = set()
    for area in levels.all_areas():
        level = levels.decode(rom, area)
        if not level.header.timer:
            continue  # a bonus room: it keeps the time of the area before, so it can't be begun alone
        known |= set(np.unique(levels.blocks(level, rom)).tolist())
    return known


def solvable(config: Config, console: Console) -> dict[str, Any]:
    """The share of levels with a solution."""
    found: dict[str, list[int]] = {}
    unsolved = []
    for seed in range(config.solved):
        level = levels.generate(seed, config.difficulty)
        style = level.name.rpartition("(")[2].rstrip(")")
        solved = solve(level).solvable
        found.setdefault(style, []).append(int(solved))
        if not solved:
            unsolved.append(seed)
            console.print(f"{level.name}: no solution found")
    count = sum(map(sum, found.values()))
    low, high = wilson(count, config.solved)
    by_style = {style: {"levels": len(one), "solved": sum(one)} for style, one in sorted(found.items())}
    return {
        "difficulty": config.difficulty, "levels": config.solved, "solved": count, "low": low, "high": high,
        "search_decisions": DECISIONS, "by_style": by_style, "unsolved_seeds": unsolved,
    }  # fmt: skip


def speed(console: Console) -> dict[str, float]:
    """How fast stage 1-1 plays as a level, as a multiple of the plain stage; the same play on both sides.

    In decisions per second of processor time, on one thread: other programs on the machine take none of that.
    """
    plain = MarioVectorEnv(16, "1-1", threads=1)
    ours = MarioVectorEnv(16, levels=[levels.decode(warpzone.rom(), "1-1")], threads=1)
    actions = np.random.default_rng(0).integers(0, 7, (200, 16))

    def measure(envs: MarioVectorEnv) -> float:
        envs.reset(seed=0)
        began = time.process_time()
        for chosen in actions:
            envs.step(chosen)
        return actions.size / (time.process_time() - began)

    rates = in_turn({"stage": lambda: measure(plain), "level": lambda: measure(ours)}, ROUNDS, console)
    plain.close()
    ours.close()
    return ratio(rates["level"], rates["stage"])


def main() -> None:
    config, console = tyro.cli(Config), Console()
    results: dict[str, Any] = {"speed": speed(console)}
    console.print(results)
    if config.solved:
        results["solvable"] = solvable(config, console)
        console.print(results["solvable"])
    if config.seeds:
        results["soak"] = soak(config, console)
        console.print(results["soak"])
    if config.out is not None:
        write_json(config.out, "levels.json", results, console)


if __name__ == "__main__":
    main()
