"""The pages of the settings, written from the code: `python bench/reference.py docs`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from warpzone.cli.commands import settings_of_commands
from warpzone.cli.flags import SEED_NAMES, SWITCHES, Flag, blank, flags_of
from warpzone.cli.info import preset_table, shown
from warpzone.cli.train import flag_groups
from warpzone.run.config import TrainConfig

WRITTEN = "<!-- Written by `python bench/reference.py docs` from the settings in the code. -->\n"
SETTINGS = """# Settings

The flags of `warpzone train`: `warpzone train -h` shows the common ones, `warpzone train --help-all` all of them. A
boolean flag `--x` is switched off by `--no-x`. Whole numbers may be written as `1e6`. A setting that you do not give is
taken from the run that is resumed, unless you give `--preset`. Otherwise it is taken from the [preset](#presets), or is
the default. Which settings suit which stage: [settings by stage](stages.md). Network and algorithm:
[settings of the learner](settings-learning.md). Flags of the other commands: [commands](commands.md).

## Environment variables

Every flag of every command can also be set by an environment variable: `WARPZONE_` and the flag's name in capitals.
`WARPZONE_NUM_ENVS=32` is `--num-envs 32`. A flag on the command line overrides the variable. A `WARPZONE_` variable
that matches no flag causes a warning. Other variables have no effect, except those below, most of them from
[the system that Warpzone replaces](from-the-seed-system.md):
"""
LEARNING = """# Settings of the learner

The flags of `warpzone train` for network, algorithm, teachers, trails, replay and data collection.
What to learn, how long and where: [settings](settings.md).
"""
LEARNING_GROUPS = ("teachers", "model", "learn", "replay", "adaptive", "collect", "trail")
COMMANDS = """# Commands

The flags of every command except `warpzone train`, which has [its own page](settings.md). Each can be set by an
environment variable too: `WARPZONE_PORT=8500` is `--port 8500`. Checking, repairing and measuring:
[commands for maintenance](commands-maintenance.md). Levels: [commands for levels](commands-levels.md).
"""
MAINTENANCE = """# Commands for maintenance

The flags of the commands that check, repair and measure. The others: [commands](commands.md).
"""
LEVELS = """# Commands for levels

The flags of `warpzone levels`; how to use it: [levels](levels.md).
"""
ELSEWHERE = {
    "checkpoints": MAINTENANCE,
    "doctor": MAINTENANCE,
    "info": MAINTENANCE,
    "bench": MAINTENANCE,
    "levels": LEVELS,
}
"""Commands that are not on the first page -> the head of their page."""
TEACHERS = "Policy distillation from other agents (kickstarting)."


def settings_page() -> str:
    """The settings of a training: what to learn, how long and where."""
    text = [SETTINGS, WRITTEN, variables_table(), "\n## Presets\n"]
    text += ["What `--preset` changes. `auto` selects `gpu` if CUDA is available, else `cpu`."]
    text += ["Some stages have other defaults: [settings by stage](stages.md).\n"]
    text += ["<!-- presets: warpzone info presets -->", preset_table(), "<!-- end of presets -->"]
    return "\n".join([*text, *_groups(of_learning=False)]) + "\n"


def learning_page() -> str:
    """The settings of a training: how it learns."""
    return "\n".join([LEARNING, WRITTEN.rstrip(), *_groups(of_learning=True)]) + "\n"


def _groups(*, of_learning: bool) -> list[str]:
    parts = {name: type(getattr(TrainConfig(), name)) for name in inspect.signature(TrainConfig).parameters}
    text = []
    for group, flags in flag_groups(flags_of(TrainConfig())).items():
        if (group in LEARNING_GROUPS) == of_learning:
            about = inspect.getdoc(parts[group]) if group in parts else TEACHERS
            text += [f"\n## {group.capitalize()}\n\n{about}\n", flag_table(flags)]
    return text


def commands_page(head: str = COMMANDS) -> str:
    """The settings of the other commands."""
    text = [head, WRITTEN.rstrip()]
    for command, kind in settings_of_commands().items():
        if kind is not TrainConfig and ELSEWHERE.get(command.split()[0], COMMANDS) == head:
            text += [
                f"\n## warpzone {command}\n\n{inspect.getdoc(kind)}\n",
                flag_table(flags_of(blank(kind))),
            ]
    return "\n".join(text) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "settings-learning.md": learning_page,
    "commands.md": commands_page,
    "commands-maintenance.md": partial(commands_page, MAINTENANCE),
    "commands-levels.md": partial(commands_page, LEVELS),
}


def variables_table() -> str:
    rows = [f"| `{name}` | `--{field.replace('_', '-')}` |" for name, field in SEED_NAMES.items()]
    rows += [f"| `{name}` | {about} |" for name, about in SWITCHES.items()]
    return "\n".join(["| variable | sets |", "|---|---|", *rows])


def flag_table(flags: Sequence[Flag]) -> str:
    rows = [f"| `{_usage(flag)}` | {shown(flag.default)} | {flag.help} |" for flag in flags]
    return "\n".join(["| flag | default | |", "|---|---|---|", *rows])


def _usage(flag: Flag) -> str:
    return (flag.field.upper() if flag.is_positional else flag.usage).replace("|", r"\|")


if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(page())
