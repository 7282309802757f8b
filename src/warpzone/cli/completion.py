"""`warpzone completion bash|zsh|fish`: a script that completes commands and flags."""

from __future__ import annotations

from warpzone.cli.commands import COMMANDS, flags_of_commands
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK

SHELLS = ("bash", "zsh", "fish")
USAGE = """usage: warpzone completion bash|zsh|fish

Print a script for the shell, for example:
  warpzone completion bash > ~/.local/share/bash-completion/completions/warpzone
  warpzone completion zsh > ~/.zfunc/_warpzone
  warpzone completion fish > ~/.config/fish/completions/warpzone.fish"""
SETTINGS: dict[str, type] = {}


def run(argv: list[str]) -> int:
    """Print the script; the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return EXIT_OK
    if argv[0] not in SHELLS:
        raise ConfigError(f"There is no completion for {argv[0]!r}: choose {', '.join(SHELLS)}.")
    print(script(argv[0]))
    return EXIT_OK


def flags(command: str) -> list[str]:
    """The flags of a command and of its subcommands."""
    own = [each for words, each in flags_of_commands().items() if words.split()[0] == command]
    return sorted({flag.name for each in own for flag in each if not flag.is_positional} | {"--help"})


def script(shell: str) -> str:
    known = {command: flags(command) for command in COMMANDS}
    if shell == "bash":
        cases = "\n".join(f'    {command}) words="{" ".join(words)}" ;;' for command, words in known.items())
        return _BASH.format(commands=" ".join(known), cases=cases)
    if shell == "zsh":
        cases = "\n".join(
            f"    {command}) compadd -- {' '.join(words)} ;;" for command, words in known.items()
        )
        return _ZSH.format(commands=" ".join(known), cases=cases)
    lines = ["complete -c warpzone -f"]
    for command, words in known.items():
        lines.append(f"complete -c warpzone -n __fish_use_subcommand -a {command} -d '{COMMANDS[command]}'")
        seen = f"'__fish_seen_subcommand_from {command}'"
        lines += [f"complete -c warpzone -n {seen} -l {word.removeprefix('--')}" for word in words]
    return "\n".join(lines)


_BASH = """_warpzone() {{
  local words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands}" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _warpzone warpzone"""

_ZSH = """#compdef warpzone
_warpzone() {{
  if (( CURRENT == 2 )); then
    compadd -- {commands}
    return
  fi
  case "${{words[2]}}" in
{cases}
  esac
  _files
}}
_warpzone "$@\""""
