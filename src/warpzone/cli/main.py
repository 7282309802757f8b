"""`warpzone`: one command, one short file for each of its subcommands."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

from warpzone.cli.commands import COMMANDS, as_given, misspelt_variables, usage
from warpzone.errors import Error, HeadLost, nearest
from warpzone.extras import what_to_install

EXIT_BAD_INPUT = 2


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        return dispatch(argv)
    except ModuleNotFoundError as error:
        sentence = what_to_install(error, argv[0] if argv else "the command line")
        if sentence is None:
            raise
        print(f"warpzone: {sentence}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except Error as error:
        print(f"warpzone: {as_given(str(error), argv, os.environ)}", file=sys.stderr)
        if isinstance(error, HeadLost):
            sys.stdout.flush()
            os._exit(EXIT_BAD_INPUT)  # Python's usual end would wait for the head, then crash in Ray
        return EXIT_BAD_INPUT
    except KeyboardInterrupt as interrupt:
        # A signal that was not awaited, or the second one: its number is there if we raised it.
        number = int(interrupt.args[0]) if interrupt.args else signal.SIGINT
        print("warpzone: interrupted", file=sys.stderr)
        return 128 + number
    except BrokenPipeError:
        return 0


def dispatch(argv: list[str]) -> int:
    """Answer what needs no subcommand, or run one."""
    if not argv:
        # Without the packages of an extra none of the listed commands would run.
        import_module("tyro")
    if not argv or argv[0] in ("-h", "--help"):
        print(f"Train agents to play Super Mario Bros.\n\n{usage('warpzone COMMAND', COMMANDS)}")
        return 0
    if argv[0] == "--version":
        from warpzone import __version__

        print(__version__)
        return 0
    if argv[0] not in COMMANDS:
        near = nearest(argv[0], COMMANDS)
        hint = f"did you mean {near}?" if near else "see warpzone -h."
        print(f"warpzone: there is no command {argv[0]!r}: {hint}", file=sys.stderr)
        return EXIT_BAD_INPUT
    for warning in misspelt_variables(os.environ):
        print(warning, file=sys.stderr)
    return int(import_module(f"warpzone.cli.{argv[0]}").run(argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
