"""`warpzone levels show|generate|check|play|export|import`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from warpzone.cli.commands import usage
from warpzone.cli.flags import blank, parse
from warpzone.cli.play import PlayConfig, serve
from warpzone.cli.settings import DryRun, Page, Rom
from warpzone.engine.rom import rom as find_rom
from warpzone.errors import ConfigError
from warpzone.levels.files import load, save, to_json
from warpzone.levels.format import encode
from warpzone.levels.generator import generate
from warpzone.levels.level import STAGES, Level, decode
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK
from warpzone.starts.level_check import DECISIONS, Solution, solve

Style = Literal["any", "overworld", "treetops", "bridges", "underground", "castle", "water"]


@dataclass(frozen=True, kw_only=True)
class Generated(Rom):
    """How levels are generated."""

    difficulty: float = 0.3
    """Difficulty of generated levels, 0 to 1."""
    style: Style = "any"
    """Style of generated levels; by default the seed chooses."""

    def level(self, seed: int) -> Level:
        return generate(
            seed, self.difficulty, None if self.style == "any" else self.style, rom=find_rom(self.rom or None)
        )


@dataclass(frozen=True, kw_only=True)
class Chosen(Generated):
    """Which level."""

    level_name: tyro.conf.Positional[str]
    """Level file, a stage such as 1-1, or a seed such as 7."""

    def chosen(self) -> Level:
        if self.level_name.isdecimal():
            return self.level(int(self.level_name))
        if (self.difficulty, self.style) != (Generated.difficulty, Generated.style):
            raise ConfigError(
                "--difficulty and --style go with a seed, such as 7, not with a stage or a file."
            )
        if self.level_name in STAGES:
            return decode(find_rom(self.rom or None), self.level_name)
        if re.fullmatch(r"\d+-\d+", self.level_name) and not Path(self.level_name).exists():
            raise ConfigError(f"There is no stage {self.level_name}: stages are 1-1 to 8-4.")
        return load(self.level_name)


@dataclass(frozen=True)
class Show(Chosen):
    """Draw a level as the game shows it."""

    out: Path = Path("level.png")
    """File of the drawing."""
    text: bool = False
    """Print the level as text instead."""


@dataclass(frozen=True)
class Generate(Generated, DryRun):
    """Generate levels from seeds. The same seed gives the same level on every machine."""

    seed: int = 0
    """Seed of the first level."""
    count: int = 1
    """Number of levels, with successive seeds."""
    check: bool = False
    """Search each level for a solution, and leave out those without."""
    out: Path = Path("levels")
    """Folder for the level files, or the .json file of a single level."""


@dataclass(frozen=True)
class Check(Chosen):
    """Search a level for a solution; exit with status 1 where none is found."""

    count: int = 1
    """Number of levels, with successive seeds."""
    decisions: int = DECISIONS
    """Length of the search, in decisions."""


@dataclass(frozen=True)
class Play(Chosen, Page):
    """Play a level in the browser, as `warpzone play` plays stages."""

    port: int = 8421
    """Port to listen on (0 = any free one)."""


@dataclass(frozen=True)
class Export(Chosen):
    """Write a stage or a generated level to a file, to change it by hand."""

    out: Path = Path("level.json")
    """Level file to write."""


@dataclass(frozen=True)
class Import(Chosen):
    """Check a level file, and print its contents."""

    text: bool = True
    """Print the level as text."""


SETTINGS = {
    "show": Show, "generate": Generate, "check": Check, "play": Play, "export": Export, "import": Import,
}  # fmt: skip


def run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        about = {w: (k.__doc__ or "").partition(". ")[0].rstrip(".").lower() for w, k in SETTINGS.items()}
        print(usage("warpzone levels NAME", about))
        return EXIT_OK
    if argv[0] not in SETTINGS:
        raise ConfigError(f"There is no command 'levels {argv[0]}': choose {', '.join(SETTINGS)}.")
    actions: dict[str, Callable[..., int]] = {
        "show": _show, "generate": _generate, "check": _check, "play": _play, "export": _export, "import": _import,
    }  # fmt: skip
    return actions[argv[0]](parse(blank(SETTINGS[argv[0]]), argv[1:], f"warpzone levels {argv[0]}"))


def _show(args: Show) -> int:
    level, image = args.chosen(), find_rom(args.rom or None)
    if args.text:
        print(level.text(image))
        return EXIT_OK
    from PIL import Image

    drawn = level.draw(image)
    try:
        Image.fromarray(drawn).save(args.out)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The drawing can't be written to {args.out}: {error}.") from None
    print(f"[levels] {_summary(level)}: {args.out} ({drawn.shape[1]} x {drawn.shape[0]} pixels)")
    return EXIT_OK


def _generate(args: Generate) -> int:
    if args.count < 1:
        raise ConfigError(f"--count is at least 1, not {args.count}.")
    is_file = args.out.suffix == ".json"
    if is_file and args.count > 1:
        raise ConfigError(f"--out {args.out} is a file, for one level: give {args.count} levels a folder.")
    folder = args.out.parent if is_file else args.out
    seeds = range(args.seed, args.seed + args.count)
    for seed in {seeds[0], seeds[-1]}:
        args.level(seed)
    if args.dry_run:
        print(f"would write {args.count} levels to {args.out}")
        return EXIT_OK
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The folder {folder} can't be made: {error.strerror}.") from None
    kept = 0
    for seed in seeds:
        level = args.level(seed)
        if args.check and not solve(level, rom=args.rom or None).solvable:
            print(f"[levels] {level.name}: no solution found, left out", flush=True)
            continue
        kept += 1
        path = args.out if is_file else folder / f"seed-{seed}.json"
        save(level, path)
        print(f"[levels] {_summary(level)}: {path}", flush=True)
    if args.check:
        print(f"[levels] {kept} of {args.count} levels have a solution ({kept / args.count:.0%})")
    return EXIT_OK if kept else EXIT_FAILED


def _check(args: Check) -> int:
    if args.count < 1 or args.decisions < 1:
        raise ConfigError("--count and --decisions are at least 1.")
    if args.count > 1 and not args.level_name.isdecimal():
        raise ConfigError("--count goes with a seed: name one, such as 7.")
    solved = 0
    for i in range(args.count):
        level = args.level(int(args.level_name) + i) if i else args.chosen()
        found = solve(level, decisions=args.decisions, rom=args.rom or None)
        solved += found.solvable
        print(f"[levels] {_summary(level)}: {_found(found)}", flush=True)
    if args.count > 1:
        print(f"[levels] {solved} of {args.count} levels have a solution ({solved / args.count:.0%})")
    return EXIT_OK if solved == args.count else EXIT_FAILED


def _found(found: Solution) -> str:
    if found.actions is None:
        return f"no solution in {found.tried:,} decisions, x up to {found.furthest:,}"
    return f"a solution of {len(found.actions)} decisions, found after {found.tried:,}"


def _play(args: Play) -> int:
    page = PlayConfig(
        rom=args.rom, host=args.host, port=args.port, token=args.token, open=args.open, dry_run=args.dry_run
    )
    return serve(page, args.chosen())


def _export(args: Export) -> int:
    level = args.chosen()
    save(level, args.out)
    print(f"[levels] {_summary(level)}: {args.out} ({len(to_json(level)):,} bytes)")
    return EXIT_OK


def _import(args: Import) -> int:
    level = args.chosen()
    print(f"[levels] {_summary(level)}: {len(encode(level))} bytes in the game's format")
    if args.text:
        print(level.text(find_rom(args.rom or None)))
    return EXIT_OK


def _summary(level: Level) -> str:
    return (
        f"{level.name or 'level'} ({level.type.name.lower()}, {level.columns} columns, "
        f"{len(level.objects)} objects, {len(level.enemies)} enemies)"
    )
