"""`warpzone bench NAME`: measure speed."""

from __future__ import annotations

from importlib import import_module

from warpzone.cli.commands import BENCHMARKS, subcommand


def run(argv: list[str]) -> int:
    """Run a benchmark; the exit code."""
    name = subcommand("warpzone bench", BENCHMARKS, argv)
    return int(import_module(f"warpzone.cli.bench_{name}").run(argv[1:]))
