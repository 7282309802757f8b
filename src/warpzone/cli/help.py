"""Help: what a command does, and its flags with their defaults."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

METAVARS = {
    "arrivals": "DIR",
    "begin_with": "RUN|FILE",
    "checkpoint": "RUN|FILE",
    "device": "DEVICE",
    "env_diagnostics_dir": "DIR",
    "heartbeat_path": "FILE",
    "host": "ADDRESS",
    "mode": "MODES",
    "report": "FILE",
    "reports_dir": "DIR",
    "resume": "RUN|FILE",
    "rom": "FILE",
    "run_name": "RUN",
    "runs_dir": "DIR",
    "stage": "STAGE",
    "stages": "STAGES",
    "teachers": "DIR",
    "trails": "DIR",
    "train_flags": "FLAGS",
}
"""What help calls the text behind a flag, where that says more than STR."""
INDENT = " " * 32


def help_text(usage: str, about: str, groups: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    """What a command does, then groups of its flags: usage and explanation of each."""
    width = min(110, shutil.get_terminal_size().columns)
    paragraphs = [textwrap.fill(" ".join(text.split()), width) for text in about.split("\n\n")]
    lines = [f"usage: {usage} [FLAGS]", "", "\n\n".join(paragraphs)]
    for title, flags in groups.items():
        lines += ["", title]
        for flag, text in flags:
            wrapped = textwrap.fill(text, width, initial_indent=INDENT, subsequent_indent=INDENT)
            start = f"  {flag} ".ljust(len(INDENT))
            is_short = len(start) == len(INDENT)
            lines.append(start + wrapped.lstrip() if is_short else f"  {flag}\n{wrapped}")
    return "\n".join(lines)


def as_text(value: Any) -> str:
    """A value as one would write it behind a flag."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
