"""What stands on the pages: commands, Python blocks, and files that a page asks its reader to write."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(
    r"(?:^<!--not run: (?P<why>[^>]+)-->\n\n?)?^```(?P<kind>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"# (\w+\.py)\n")


@dataclass(frozen=True)
class Command:
    page: str
    line: str
    why_not: str
    """Why the page says that no test runs it; empty where one does."""


def blocks(page: Path, *kinds: str) -> list[tuple[str, str]]:
    """The text of each fenced block of some kinds, and why it is not run."""
    found = FENCE.finditer(page.read_text())
    return [(match["text"], match["why"] or "") for match in found if match["kind"] in kinds]


def commands() -> list[Command]:
    """Every command of a `bash` or `sh` block once, and as one to run if any page has it so."""
    found: dict[str, Command] = {}
    for page in PAGES:
        for text, why in blocks(page, "bash", "sh"):
            lines = [line.partition(" #")[0].strip() for line in text.replace("\\\n", " ").splitlines()]
            for line in filter(None, lines):
                plain = shlex.join(shlex.split(line.removeprefix(".venv/bin/")))
                if plain not in found or not why:
                    found[plain] = Command(page.name, line.removeprefix(".venv/bin/"), why)
    return list(found.values())


def scripts(page: Path) -> list[str]:
    """Python to be run from top to bottom: all blocks that are no file of their own."""
    return [text for text, why in blocks(page, "python") if not why and not FILE.match(text)]


def files() -> dict[str, str]:
    """Files that pages ask their readers to write: Python blocks that begin with `# name.py`."""
    texts = [text for page in PAGES for text, _ in blocks(page, "python")]
    return {match[1]: text for text in texts if (match := FILE.match(text))}
