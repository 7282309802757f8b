"""`warpzone checkpoints list|inspect|backfill|prune|widen`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from warpzone.agents.agent import resolve_checkpoint
from warpzone.agents.widen import widened
from warpzone.checkpoints.finding import find_place, find_resume
from warpzone.checkpoints.repairing import SEED_ROLLOUT_STEPS, apply_repair, find_repairs
from warpzone.checkpoints.saving import checkpoint_path, load_checkpoint, prune, read_meta, save_checkpoint
from warpzone.cli.commands import subcommand
from warpzone.cli.flags import blank, parse
from warpzone.cli.settings import DryRun, RunsFolder
from warpzone.errors import CheckpointError, ConfigError
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK


@dataclass(frozen=True)
class List(RunsFolder):
    """List the checkpoints of runs, and whether each is intact."""

    paths: tyro.conf.Positional[tuple[str, ...]] = ()
    """Runs by name or folder, or folders of runs; by default all."""
    verify: bool = True
    """Check the digest of every file instead of reading sidecars only."""


@dataclass(frozen=True)
class Inspect(RunsFolder):
    """Show the contents of a checkpoint. Nothing in it is executed."""

    path: tyro.conf.Positional[str]
    """Checkpoint file, or a run's name for its best checkpoint."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Backfill(RunsFolder, DryRun):
    """Repair sidecars that say global_step 0 after many updates; the originals stay as .bak."""

    paths: tyro.conf.Positional[tuple[str, ...]] = ()
    """Sidecars, runs or folders to search; by default all runs."""
    assume_rollout_steps: int = SEED_ROLLOUT_STEPS
    """Rollout length where a sidecar has none, in decisions."""
    check: bool = False
    """Change nothing; exit with status 1 if something needs repair."""


@dataclass(frozen=True)
class Prune(RunsFolder, DryRun):
    """Delete all but the newest numbered checkpoints of runs; `latest` and `best` always stay."""

    paths: tyro.conf.Positional[tuple[str, ...]] = ()
    """Runs by name or folder, or folders of runs; by default all."""
    keep: int = 5
    """Numbered checkpoints to keep per run."""


@dataclass(frozen=True)
class Widen(RunsFolder):
    """Give a trained agent a larger action set, to resume from with `train --resume`."""

    path: tyro.conf.Positional[str]
    """Checkpoint file, or a run's name for its newest checkpoint."""
    action_type: Literal["simple", "complex", "extended"]
    """Larger action set that begins with the agent's own."""
    out: Path
    """Path of the new checkpoint."""


SETTINGS = {"list": List, "inspect": Inspect, "backfill": Backfill, "prune": Prune, "widen": Widen}


def run(argv: list[str]) -> int:
    about = {
        word: str(kind.__doc__).partition(". ")[0].rstrip(".").lower() for word, kind in SETTINGS.items()
    }
    word = subcommand("warpzone checkpoints", about, argv)
    actions: dict[str, Callable[..., int]] = {
        "list": _list, "inspect": _inspect, "backfill": _backfill, "prune": _prune, "widen": _widen,
    }  # fmt: skip
    return actions[word](parse(blank(SETTINGS[word]), argv[1:], f"warpzone checkpoints {word}"))


def _list(args: List) -> int:
    rows: list[tuple[str, ...]] = [("checkpoint", "update", "step", "cleared", "MB", "saved", "state")]
    places = _places(args.paths, args.runs_dir)
    rows += [_row(path, args.verify) for folder in _checkpoint_folders(places) for path in _files(folder)]
    if len(rows) == 1:
        print(f"no checkpoints below {', '.join(map(str, places))}")
        return EXIT_OK
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if 0 < column < 5 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    return EXIT_OK


def _row(path: Path, verify: bool) -> tuple[str, ...]:
    try:
        meta = read_meta(path, verify=verify)
    except CheckpointError as error:
        return (str(path), "-", "-", "-", _megabytes(path), "-", str(error).replace(str(path), "it"))
    rate, when = meta.clear_rate_mean, meta.created_unix_s
    cleared = "-" if rate is None else f"{100 * rate:.0f}%"
    saved = time.strftime("%Y-%m-%d %H:%M", time.localtime(when)) if when else "-"
    counts = (str(meta.global_update), str(meta.global_step))
    return (str(path), *counts, cleared, _megabytes(path), saved, "intact" if verify else "not verified")


def _megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f}"


def _inspect(args: Inspect) -> int:
    path = resolve_checkpoint(args.path, args.runs_dir)
    checkpoint = load_checkpoint(path)
    tensors = list(_leaves(checkpoint.state, ""))
    numbers = sum(count for *_, count in tensors)
    if args.json:
        held = {name: shape for name, shape, _ in tensors}
        print(json.dumps({"path": str(path), **asdict(checkpoint.meta), "holds": held}, indent=2))
        return EXIT_OK
    print(f"{path}: sound, {path.stat().st_size} bytes, {len(tensors)} arrays with {numbers} numbers")
    for name, value in asdict(checkpoint.meta).items():
        print(f"  {name}: {json.dumps(value)}")
    for name, shape, _ in tensors:
        print(f"  {name} {shape}")
    return EXIT_OK


def _leaves(tree: Any, name: str) -> Iterator[tuple[str, list[int], int]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    elif isinstance(tree, list | tuple):
        for number, value in enumerate(tree):
            yield from _leaves(value, f"{name}[{number}]")
    elif hasattr(tree, "shape"):
        shape = [int(n) for n in tree.shape]
        yield name or "state", shape, math.prod(shape)


def _backfill(args: Backfill) -> int:
    if args.assume_rollout_steps < 1:
        raise ConfigError("--assume-rollout-steps is at least 1")
    repairs = [
        repair
        for path in _places(args.paths, args.runs_dir)
        for repair in find_repairs(path, assume_rollout_steps=args.assume_rollout_steps)
    ]
    changing = not (args.check or args.dry_run)
    for repair in repairs:
        print(repair)
        if changing and repair.global_step is not None:
            apply_repair(repair)
    impossible = sum(repair.global_step is None for repair in repairs)
    done = "repaired" if changing else "need repair"
    print(f"[migrate] {len(repairs) - impossible} {done}, {impossible} cannot be repaired")
    return EXIT_FAILED if args.check and repairs else EXIT_OK


def _prune(args: Prune) -> int:
    if args.keep < 1:
        raise ConfigError("--keep is at least 1 here; delete a run's folder to be rid of all its checkpoints")
    for folder in _checkpoint_folders(_places(args.paths, args.runs_dir)):
        for path in prune(folder, args.keep, dry_run=args.dry_run):
            print(f"{'would delete' if args.dry_run else 'deleted'} {path}")
    return EXIT_OK


def _widen(args: Widen) -> int:
    source = find_resume(Path(), resume=args.path, runs_folder=args.runs_dir)
    assert source is not None
    out = checkpoint_path(args.out)
    if out.exists():
        raise CheckpointError(f"{out} exists: choose another name")
    wide = widened(load_checkpoint(source.path), args.action_type)
    save_checkpoint(out.parent, out.stem, wide.state, wide.meta)
    print(f"wrote {out}; resume with: warpzone train --resume {out} --action-type {args.action_type}")
    return EXIT_OK


def _places(paths: tuple[str, ...], runs_dir: Path) -> list[Path]:
    """The files and folders that were named, or all runs."""
    if not paths and not runs_dir.is_dir():
        raise CheckpointError(f"There is no folder {runs_dir}: choose another --runs-dir.")
    return [find_place(path, runs_dir) for path in paths] or [runs_dir]


def _checkpoint_folders(places: list[Path]) -> list[Path]:
    """The folders at or below `places` that hold checkpoint files."""
    return sorted({file.parent for place in places for file in place.rglob("*.pt")})


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.pt") if not path.name.startswith("."))
