"""The subcommands of `warpzone`, their settings, and the environment variables that stand for their flags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from warpzone.errors import ConfigError, nearest

if TYPE_CHECKING:
    from warpzone.cli.flags import Flag

COMMANDS = {
    "train": "train an agent",
    "master": "train one policy for many stages: specialists, distillation, evaluation",
    "explore": "search for solutions of stages (trails), for the reverse curriculum",
    "eval": "measure how well an agent plays",
    "record": "record a video of an agent, or of a replay",
    "watch": "follow runs live in the browser",
    "control": "pause, stop or change a run while it trains",
    "play": "play in the browser; save replays and start states",
    "levels": "show, generate, check, play, export and import levels",
    "report": "write an HTML report of one run, or a comparison of several",
    "bench": "measure speed: env, train, overlap, replay",
    "sweep": "search for better settings with Optuna",
    "checkpoints": "list, inspect, repair and prune checkpoints",
    "export": "export a run's metrics or its agent as a file",
    "doctor": "check the installation, or test the stability of environments",
    "info": "print versions, ROM, processor and GPU, or the table of presets",
    "completion": "print a completion script for bash, zsh or fish",
}
"""Each is a module with `SETTINGS` and `run(argv)`, which parses, does it and returns the exit code."""
BENCHMARKS = {
    "env": "the native engine against nes-py",
    "train": "training against Stable-Baselines3 PPO, with the same network and epochs",
    "overlap": "overlapped against serial collection, for several sizes",
    "replay": "accuracy and speed of the replay's samplers",
}


def usage(title: str, words: Mapping[str, str]) -> str:
    """The help of a command that has subcommands."""
    width = max(map(len, words))
    lines = [f"  {name:<{width}}  {text}" for name, text in words.items()]
    return "\n".join([f"usage: {title} [-h] ...", "", *lines, "", f"{title} -h shows the flags."])


def subcommand(command: str, words: Mapping[str, str], argv: list[str]) -> str:
    """Which of a command's words was given; prints the help and leaves where there is none."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage(f"{command} NAME", words))
        raise SystemExit(0)
    if argv[0] not in words:
        raise ConfigError(f"There is no command '{command} {argv[0]}': choose {', '.join(words)}.")
    return argv[0]


def settings_of_commands() -> dict[str, type]:
    """The settings dataclass of every command, by its words, such as `checkpoints list`."""
    found: dict[str, type] = {}
    for name in [*(name for name in COMMANDS if name != "bench"), *(f"bench {name}" for name in BENCHMARKS)]:
        own = import_module(f"warpzone.cli.{name.replace(' ', '_')}").SETTINGS
        found |= {f"{name} {word}".strip(): kind for word, kind in own.items()}
    return found


def flags_of_commands() -> dict[str, list[Flag]]:
    """The flags of every command."""
    # Not above: help and version need no package of an extra.
    from warpzone.cli.flags import blank, flags_of

    return {command: flags_of(blank(kind)) for command, kind in settings_of_commands().items()}


def misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    """A warning for every WARPZONE_ variable that is neither a flag of any command nor otherwise known."""
    from warpzone.cli.flags import PREFIX, SWITCHES

    names = [name for name in environ if name.startswith(PREFIX) and name not in SWITCHES]
    if not names:
        return []
    known = {flag.variable for flags in flags_of_commands().values() for flag in flags} | set(SWITCHES)
    lines = []
    for name in sorted(set(names) - known):
        near = nearest(name, sorted(known))
        hint = f": did you mean {near}?" if near else ""
        lines.append(f"warpzone: warning: no command has a flag for the variable {name}{hint}")
    return lines


def as_given(sentence: str, argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """The sentence with the setting that it begins with named as the user gave it: --num-envs, not num_envs."""
    setting = re.match(r"[a-z][a-z_]*(?= (\(\d+\) )?(must|needs) )", sentence)
    if setting is None:
        return sentence
    from warpzone.cli.flags import PREFIX, given

    flag, variable = "--" + setting[0].replace("_", "-"), PREFIX + setting[0].upper()
    # Words, as one may hold several flags: --train-flags='--num-envs 0'.
    by_flag = given(setting[0], re.split(r"[\s=]+", " ".join(argv)), {}) is not None
    name = flag if by_flag else variable if variable in environ else setting[0]
    return name + sentence[setting.end() :]
