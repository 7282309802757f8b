"""`warpzone bench NAME`: measure speed."""

from __future__ import annotations

from importlib import import_module

from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK

BENCHMARKS = {
    "env": "the native engine against nes-py",
    "train": "training against Stable-Baselines3 PPO, same network and reuse",
    "overlap": "collecting beside learning against taking turns, as a matrix",
    "replay": "the replay's sampler: how exact and how fast it draws",
    "backends": "the native engine, nes-py and nes-py in workers: make, reset, step",
}


def usage() -> str:
    width = max(map(len, BENCHMARKS))
    listed = [f"  {name:<{width}}  {text}" for name, text in BENCHMARKS.items()]
    return "\n".join(
        ["usage: warpzone bench NAME [-h] ...", "", *listed, "", "warpzone bench NAME -h tells more."]
    )


def run(argv: list[str]) -> int:
    """Run a benchmark; the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return EXIT_OK
    if argv[0] not in BENCHMARKS:
        raise ConfigError(f"There is no benchmark {argv[0]!r}: choose one of {', '.join(BENCHMARKS)}.")
    return int(import_module(f"warpzone.cli.bench_{argv[0]}").run(argv[1:]))
