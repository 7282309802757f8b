"""`warpzone explore`: find states to start episodes from: trails by random play, or an agent's arrivals."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from warpzone.cli.flags import parse
from warpzone.cli.settings import Rom, RunsFolder
from warpzone.engine.rom import rom as find_rom
from warpzone.envs.config import cores
from warpzone.envs.stages import ALL_STAGES, GAME, parse_stages
from warpzone.errors import ConfigError
from warpzone.run.stopping import StopFlag
from warpzone.starts.arrivals import save_arrivals
from warpzone.starts.exploration import Explorer, find_trail
from warpzone.starts.trails import Trail, load_trail, of_seed, save_trail

SAY_EVERY_S = 10.0


@dataclass(frozen=True)
class ExploreConfig(RunsFolder, Rom):
    """Search for a trail, a solution of the stage, by random play from places that were already reached.

    `warpzone train --trails` then starts episodes along the trails, near their end first (a reverse curriculum).

    With --checkpoint, an agent plays from each stage into the next, and the states in which it arrives there are
    saved. `warpzone train --arrivals` starts a share of the episodes from them.
    """

    stages: str = "1-1"
    """Stages: 'all', a world such as '3', or '1-1,4-4'."""
    out: Path = Path("trails")
    """Folder for the trails or arrivals; stages that have some there are skipped."""
    minutes: float = 5.0
    """Time limit per try, with --checkpoint for all stages together, in minutes."""
    tries: int = 1
    """Searches per stage, with successive seeds; the shortest trail is the main one."""
    seed: int = 0
    """Random seed of the first try."""
    threads: int = 0
    """Stages searched at the same time (0 = one per core)."""
    frame_skip: int = 4
    """Frames each action is held; use the value of the training."""
    checkpoint: str = ""
    """Checkpoint, agent file or run whose arrivals are collected instead of trails."""
    arrivals: int = 32
    """Arrivals per stage, with --checkpoint."""
    device: str = "cpu"
    """Device of the agent, with --checkpoint: cpu or cuda."""
    trust_code: bool = False
    """Run the custom encoder kept in the run's folder; read it first."""


SETTINGS = {"": ExploreConfig}


def run(argv: list[str]) -> int:
    """Explore; 1 if a stage has no trail in the end."""
    config = parse(ExploreConfig(), argv, "warpzone explore")
    if not config.minutes > 0 or config.tries < 1 or config.threads < 0:
        raise ConfigError("--minutes must be more than 0, --tries at least 1, --threads can't be negative.")
    if config.arrivals < 1:
        raise ConfigError("--arrivals must be at least 1.")
    stages = parse_stages(config.stages)
    digest = hashlib.sha256(find_rom(config.rom or None)).hexdigest()
    if config.checkpoint:
        return _collect_arrivals(config, stages, digest)
    with StopFlag(print) as stop, ThreadPoolExecutor(config.threads or cores()) as pool:

        def one(stage: str) -> Trail | None:
            if known := load_trail(config.out, stage, digest):
                return known
            seeds = range(config.seed, config.seed + config.tries)
            ways = {
                seed: way
                for seed in seeds
                if not stop and (way := _explore(config, stage, seed, digest, stop))
            }
            if not ways:
                return None
            shortest = min(ways.values(), key=lambda way: way.decisions)
            if len(ways) > 1:
                for seed, way in ways.items():
                    save_trail(way, of_seed(config.out, seed))
            path = save_trail(shortest, config.out)
            print(f"[explore] {stage}: {shortest.decisions} decisions in {path}", flush=True)
            return shortest

        found = list(pool.map(one, stages))
    if stop:
        return stop.exit_code
    print(
        f"[explore] {sum(t is not None for t in found)} of {len(stages)} stages have a trail in {config.out}"
    )
    return 0 if all(found) else 1


def _collect_arrivals(config: ExploreConfig, stages: list[str], digest: str) -> int:
    """Let an agent play into the stages; 1 if one of them has no arrival in the end."""
    from warpzone.agents.agent import load_agent
    from warpzone.agents.arrivals import collect_arrivals
    from warpzone.run.device import named_device

    entered = [stage for stage in stages if stage not in (ALL_STAGES[0], GAME)]
    if not entered:
        raise ConfigError("Nothing leads into 1-1: name later --stages to arrive in.")
    missing = [stage for stage in entered if not (config.out / f"{stage}.npz").exists()]
    agent = load_agent(
        config.checkpoint, config.runs_dir, named_device(config.device), config.threads or cores(),
        trust_code=config.trust_code,
    )  # fmt: skip
    began = said = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said > SAY_EVERY_S:
            said = time.monotonic()
            print(f"[explore] {said - began:.0f} s, {done} of {total} arrivals", flush=True)

    with StopFlag(print) as stop:
        found = collect_arrivals(
            agent, missing, config.arrivals, seed=config.seed, on_progress=progress,
            should_stop=lambda: bool(stop) or time.monotonic() - began > 60 * config.minutes,
            threads=config.threads, rom=config.rom or None,
        )  # fmt: skip
    for stage, moments in found.items():
        if moments:
            path = save_arrivals(config.out, stage, moments, digest)
            print(f"[explore] {stage}: {len(moments)} arrivals in {path}", flush=True)
    without = [stage for stage, moments in found.items() if not moments]
    print(
        f"[explore] no arrivals in {', '.join(without)}" if without else "[explore] all stages have arrivals"
    )
    return stop.exit_code or int(bool(without))


def _explore(config: ExploreConfig, stage: str, seed: int, digest: str, stop: StopFlag) -> Trail | None:
    """One try, saying how far it is."""
    said = time.monotonic()

    def progress(so_far: Explorer) -> None:
        nonlocal said
        if time.monotonic() - said > SAY_EVERY_S:
            said = time.monotonic()
            print(
                f"[explore] {stage}: {so_far.seconds:.0f} s, {so_far.tried:,} decisions, "
                f"{so_far.cells:,} places, x up to {so_far.furthest:,}",
                flush=True,
            )

    trail = find_trail(
        stage, rom_sha256=digest, frame_skip=config.frame_skip, seed=seed, rom=config.rom or None,
        minutes=config.minutes, progress=progress, should_stop=lambda: bool(stop),
    )  # fmt: skip
    if trail is not None:
        print(
            f"[explore] {stage}: a way of {trail.decisions} decisions, found after {trail.tried:,} in "
            f"{trail.seconds:.0f} s",
            flush=True,
        )
    elif not stop:
        print(f"[explore] {stage}: no trail found in {config.minutes:g} minutes", flush=True)
    return trail
