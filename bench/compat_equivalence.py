"""Compares warpzone.compat with gym-super-mario-bros 7 on nes-py, step by step, and writes what differs.

    python bench/compat_equivalence.py --recordings FOLDER --out docs/data/compat_equivalence.json

The original plays each stage with three random tapes of actions and, where `bench/compat_tapes.json` has one, the tape
of a trained agent that reaches the flag. Reward, done, info, RAM (2048 bytes) and all pixels of every step are kept
as digests, a file a tape: an interrupted run resumes, and a later one compares with what is there. Then ours plays the
same. Needs gym-super-mario-bros 7 with nes-py 8.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.cli.info import made
from warpzone.envs.nes_py.patches import installed, patch_nes_py, quiet_gym

STYLES = ("simple", "right", "bytes")
"""Of a tape: SIMPLE_MOVEMENT held for some steps; the same, mostly to the right; any of the 256 bytes."""

BYTES = {"simple": (0, 128, 129, 130, 131, 1, 64), "right": (128, 129, 130, 131, 131, 131, 64)}

CALLS = {700: "backup", 1000: "restore", 1300: "reset"}
"""What tapes of bytes do besides steps, by the step before which they do it."""

AGENT_TAPES = Path(__file__).parent / "compat_tapes.json"
"""By stage, the bytes that a trained agent pressed, as [byte, steps] pairs."""

WHAT = ("reward", "done", "info", "ram", "pixels")

Op = int | str


def original(target: tuple[int, int] | None, **arguments: Any) -> Any:
    """The environment of the real package."""
    patch_nes_py()
    with quiet_gym():
        from gym_super_mario_bros import SuperMarioBrosEnv
    return SuperMarioBrosEnv(target=target, **arguments)


def ours(target: tuple[int, int] | None, **arguments: Any) -> Any:
    """Its counterpart here."""
    from warpzone.compat.gym_super_mario_bros import SuperMarioBrosEnv

    return SuperMarioBrosEnv(target=target, **arguments)


def tape(style: str, seed: int, steps: int) -> Iterator[int]:
    """Actions as bytes, each held for up to 30 steps."""
    rng = np.random.default_rng(seed)
    left, action = 0, 0
    for _ in range(steps):
        if left == 0:
            left = int(rng.integers(1, 31))
            action = int(rng.integers(256)) if style == "bytes" else int(rng.choice(BYTES[style]))
            # Start pauses the game, and select does nothing: a tape of bytes should not stand still for long.
            action &= ~8 if rng.random() < 0.9 else 255
        left -= 1
        yield action


def with_calls(actions: Iterable[int]) -> Iterator[Op]:
    """The tape with the calls of `CALLS` in between."""
    for step, action in enumerate(actions):
        if step in CALLS:
            yield CALLS[step]
        yield action


def digest(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def events(env: Any, ops: Iterable[Op]) -> Iterator[tuple[Op, dict[str, Any]]]:
    """Plays, and gives what there is to see after each call. Where an episode ends, a step more must be refused."""

    def seen(op: Op, **outcome: Any) -> tuple[Op, dict[str, Any]]:
        nothing = {"reward": None, "done": None, "info": None}
        return op, {**nothing, **outcome, "ram": env.ram, "pixels": env.screen}

    env.reset()
    yield seen("reset")
    for op in ops:
        if isinstance(op, str):
            getattr(env, "reset" if op == "reset" else f"_{op}")()
            yield seen(op)
            continue
        _, reward, done, info = env.step(op)
        plain = {key: value if isinstance(value, str) else int(value) for key, value in info.items()}
        yield seen(op, reward=float(reward), done=bool(done), info=plain)
        if done:
            try:
                env.step(op)
            except ValueError as error:
                yield seen("after", info=str(error))
            else:
                yield seen("after", info="a step after the end was taken")
            env.reset()
            yield seen("reset")


def digests(seen: dict[str, Any]) -> list[int]:
    """A number for each of `WHAT`."""
    text = [json.dumps(seen[what], sort_keys=True).encode() for what in WHAT[:3]]
    return [digest(data) for data in (*text, seen["ram"].tobytes(), np.ascontiguousarray(seen["pixels"]))]


def differences(theirs: Any, mine: Any, ops: Iterable[Op]) -> dict[str, Any]:
    """Plays the tape on both, side by side. How many steps differed in what, and the first of them."""
    count = dict.fromkeys(("steps", "episodes", "flags", *WHAT), 0)
    first: dict[str, str] = {}
    ops = list(ops)
    for (op, a), (_, b) in zip(events(theirs, ops), events(mine, ops), strict=True):
        tally(count, op, a)
        for what in WHAT:
            if np.array_equal(a[what], b[what]):
                continue
            count[what] += 1
            if what in ("ram", "pixels"):
                where = np.argwhere(a[what] != b[what])[:8].tolist()
                first.setdefault(what, f"step {count['steps']}: at {where}")
            else:
                first.setdefault(what, f"step {count['steps']}: {a[what]} and {b[what]}")
    return {**count, "first": first}


def tally(count: dict[str, int], op: Op, seen: dict[str, Any]) -> None:
    if isinstance(op, int):
        count["steps"] += 1
        count["episodes"] += seen["done"]
        count["flags"] += bool(seen["info"]["flag_get"])


def agent_tapes() -> dict[str, list[int]]:
    """Those of `compat_tapes.json`, written out."""
    stored = json.loads(AGENT_TAPES.read_text())["tapes"] if AGENT_TAPES.is_file() else {}
    return {stage: [byte for byte, steps in pairs for _ in range(steps)] for stage, pairs in stored.items()}


def jobs(stages: list[str], tapes: int, steps: int) -> Iterator[tuple[str, str, list[Op]]]:
    """Stage, name of the tape, and what it does. Each stage's first tape comes before anybody's second."""
    played = agent_tapes()
    for stage in stages:
        if stage in played:
            yield stage, "agent", list(played[stage])
    for index in range(tapes):
        for stage in stages:
            style = STYLES[index % len(STYLES)]
            actions = tape(style, 1000 * int(stage[0]) + 100 * int(stage[2]) + index, steps)
            yield stage, f"{style}-{index}", list(with_calls(actions) if style == "bytes" else actions)


def record(path: Path, stage: str, ops: list[Op]) -> dict[str, Any]:
    """The original's digests of a tape, from the file if it has been played."""
    wanted = digest(json.dumps([stage, ops]).encode())
    if path.is_file():
        with np.load(path) as stored:
            if int(stored["tape"]) == wanted:
                return dict(stored)
    count = dict.fromkeys(("steps", "episodes", "flags"), 0)
    rows = []
    for op, seen in events(original((int(stage[0]), int(stage[2]))), ops):
        tally(count, op, seen)
        rows.append(digests(seen))
    found = {"tape": np.uint64(wanted), "digests": np.array(rows, np.uint64), **count}
    half = path.with_name(path.stem + ".part.npz")
    np.savez(half, **found)
    half.replace(path)
    return found


def compare(stage: str, ops: list[Op], recorded: dict[str, Any]) -> dict[str, Any]:
    """Ours against the recorded digests."""
    env = ours((int(stage[0]), int(stage[2])))
    mine = np.array([digests(seen) for _, seen in events(env, ops)], np.uint64)
    theirs = recorded["digests"]
    if mine.shape != theirs.shape:
        both = min(len(mine), len(theirs))
        mine, theirs = mine[:both], theirs[:both]
    differs = mine != theirs
    result = {key: int(recorded[key]) for key in ("steps", "episodes", "flags")}
    result.update({what: int(differs[:, i].sum()) for i, what in enumerate(WHAT)})
    first = {what: int(np.argmax(differs[:, i])) for i, what in enumerate(WHAT) if differs[:, i].any()}
    return {**result, "first": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", nargs="+", default=[f"{w}-{s}" for w in range(1, 9) for s in range(1, 5)])
    parser.add_argument("--tapes", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--recordings", type=Path, required=True, help="folder of the original's digests")
    parser.add_argument("--only-recorded", action="store_true", help="leave out what is not recorded yet")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    args.recordings.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for stage, name, ops in jobs(args.stages, args.tapes, args.steps):
        path = args.recordings / f"{stage}-{name}.npz"
        if args.only_recorded and not path.is_file():
            continue
        results.append({"stage": stage, "tape": name, **compare(stage, ops, record(path, stage, ops))})
        print(results[-1], flush=True)
        if args.out:
            write_report(args.out, results)
    sys.exit(any(result[what] for result in results for what in WHAT))


def write_report(out: Path, results: list[dict[str, Any]]) -> None:
    """What has been compared so far, a line a tape."""
    report = {
        **made(),
        "versions": {name: installed(name) for name in ("gym-super-mario-bros", "nes-py", "gym", "numpy")},
        "python": sys.version.split()[0],
        "stages": len({r["stage"] for r in results}),
        "tapes": len(results),
        "totals": {key: sum(r[key] for r in results) for key in ("steps", "episodes", "flags", *WHAT)},
    }
    lines = ",\n  ".join(json.dumps(r) for r in results)
    out.write_text(f'{json.dumps(report, indent=1)[:-2]},\n "results": [\n  {lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
