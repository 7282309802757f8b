"""`warpzone`: one command, one short file for each of its subcommands."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

from warpzone.errors import Error

EXIT_BAD_INPUT = 2
COMMANDS = {
    "train": "train an agent",
    "explore": "find a way through stages by random play, to learn backwards from",
    "eval": "measure how well an agent plays",
    "record": "film an agent, or a replay of yours",
    "watch": "follow runs live in the browser",
    "play": "play yourself in the browser, and save it as a replay or a start",
    "report": "show one or several runs as a page",
    "bench": "measure speed: env, train, overlap, replay",
    "sweep": "search for better settings with Optuna",
    "checkpoints": "list, inspect, repair and prune checkpoints",
    "export": "write a run's metrics as Parquet or CSV",
    "doctor": "check the installation, and that environments are stable",
    "info": "print versions, ROM, processor and GPU, for bug reports",
    "completion": "print a completion script for bash, zsh or fish",
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: warpzone COMMAND [-h] ...",
            "",
            "Trains agents that clear Super Mario Bros.",
            "",
            *lines,
            "",
            "warpzone COMMAND -h tells more.",
        ]
    )


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if argv[0] == "--version":
        from warpzone import __version__

        print(__version__)
        return 0
    if argv[0] not in COMMANDS:
        print(f"warpzone: there is no command {argv[0]!r}: see warpzone -h.", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        return int(import_module(f"warpzone.cli.{argv[0]}").run(argv[1:]))
    except Error as error:
        print(f"warpzone: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt as interrupt:
        # A signal that was not awaited, or the second one: its number is there if we raised it.
        number = int(interrupt.args[0]) if interrupt.args else signal.SIGINT
        print("warpzone: interrupted", file=sys.stderr)
        return 128 + number
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
