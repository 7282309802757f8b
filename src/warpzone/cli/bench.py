"""`warpzone bench NAME`: measure speed."""

from __future__ import annotations

from importlib import import_module

from warpzone.cli.commands import BENCHMARKS, usage
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK


def run(argv: list[str]) -> int:
    """Run a benchmark; the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage("warpzone bench NAME", BENCHMARKS))
        return EXIT_OK
    if argv[0] not in BENCHMARKS:
        raise ConfigError(f"There is no benchmark {argv[0]!r}: choose one of {', '.join(BENCHMARKS)}.")
    return int(import_module(f"warpzone.cli.bench_{argv[0]}").run(argv[1:]))
