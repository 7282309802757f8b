"""`warpzone completion bash|zsh|fish`: a script that completes commands, flags and their values."""

from __future__ import annotations

import contextlib
import io
from dataclasses import make_dataclass
from typing import Annotated, Any, Union

import tyro

from warpzone.cli.commands import settings_of_commands
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK

SETTINGS: dict[str, type] = {}
SHELLS = ("bash", "zsh", "fish")
USAGE = """usage: warpzone completion bash|zsh|fish

Print a script for the shell, for example:
  warpzone completion bash > ~/.local/share/bash-completion/completions/warpzone
  warpzone completion zsh > ~/.zfunc/_warpzone
  warpzone completion fish > ~/.config/fish/completions/warpzone.fish"""


def run(argv: list[str]) -> int:
    """Print the script; the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return EXIT_OK
    if argv[0] not in SHELLS:
        raise ConfigError(f"There is no completion for {argv[0]!r}: choose {', '.join(SHELLS)}.")
    print(script(argv[0]))
    return EXIT_OK


def script(shell: str) -> str:
    """tyro's completion script for all commands as one parser."""
    commands: dict[str, Any] = {"completion": make_dataclass("completion", [])}
    nested: dict[str, list[Any]] = {}
    for words, kind in settings_of_commands().items():
        command, _, word = words.partition(" ")
        if word:
            nested.setdefault(command, []).append(Annotated[kind, tyro.conf.subcommand(word)])
        else:
            commands[command] = kind
    for command, kinds in nested.items():
        commands[command] = make_dataclass(command, [("command", Union[tuple(kinds)])])  # noqa: UP007
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="warpzone",
            args=["--tyro-write-completion", shell, "-"],
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
        )
    return printed.getvalue()
