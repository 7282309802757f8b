"""Counts the lines of src/warpzone: by package, in all, and without what later issues asked for.

    python bench/lines.py                     # the working tree
    python bench/lines.py --revision 60cfd7f  # a commit

Before the layout of November 2026 the package had 19,087 lines. What came on top of it is listed in `LATER`: the rest
can do what those lines could.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tyro

ROOT = Path(__file__).parents[1]
SOURCE = "src/warpzone/"
LATER = {
    "the interfaces of gym-super-mario-bros and nes-py": ("compat/",),
    "many machines and GPUs": ("cluster/", "cli/doctor_cluster.py", "learn/ranks.py"),
    "one policy from the ROM": ("master/", "cli/master.py", "cli/master_board.py"),
    "levels": (
        "levels/", "cli/levels.py", "envs/custom_levels.py", "envs/level_pool.py", "starts/level_check.py",
    ),
    "the interface for Python, one's own encoders and rewards": (
        "api.py", "custom_code.py", "run/custom_parts.py", "extras.py",
    ),
    "results with intervals, and the whole game": ("agents/intervals.py", "agents/whole_game.py"),
}  # fmt: skip
"""Later features -> their folders and files."""


@dataclass(frozen=True)
class Config:
    revision: str = ""
    """Commit to count; by default the working tree."""


def line_counts(revision: str) -> dict[str, int]:
    """Lines by file, relative to src/warpzone."""
    command = ["ls-tree", "-r", "--name-only", revision] if revision else ["ls-files"]
    files = [name for name in git(*command, SOURCE).splitlines() if name.endswith(".py")]
    if revision:
        texts = {name: git("show", f"{revision}:{name}") for name in files}
    else:
        texts = {name: path.read_text() for name in files if (path := ROOT / name).exists()}
    return {name.removeprefix(SOURCE): text.count("\n") for name, text in texts.items()}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main(config: Config) -> None:
    lines = line_counts(config.revision)
    packages = Counter[str]()
    for name, count in lines.items():
        packages[name.partition("/")[0] if "/" in name else "(top)"] += count
    for name, count in sorted(packages.items()):
        print(f"{name:<12} {count:>7,}")
    print(f"{'total':<12} {sum(lines.values()):>7,}\n")
    left = sum(lines.values())
    for feature, places in LATER.items():
        count = sum(n for name, n in lines.items() if name.startswith(places))
        left -= count
        print(f"- {count:>6,}  {feature}")
    print(f"= {left:>6,}  what those 19,087 could do")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
