"""Counts the lines of src/warpzone: by package, in all, and without what was added since November 2026's new layout.

    python bench/lines.py                     # the working tree
    python bench/lines.py --revision 60cfd7f  # a commit

Before that layout the package had 19,087 lines (60cfd7f). `LATER` lists features that those lines did not have: folders
and files that hold nothing else, and functions and classes in shared files. Uses of them elsewhere are not subtracted.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tyro

ROOT = Path(__file__).parents[1]
SOURCE = "src/warpzone/"
LATER = {
    "the interfaces of gym-super-mario-bros and nes-py": ["compat/"],
    "many machines and GPUs": [
        "cluster/", "cli/doctor_cluster.py", "learn/ranks.py", "run/following.py", "run/scale.py",
        "run/config.py:TrainConfig._check_ranks", "run/config.py:TrainConfig._with_hosts",
        "run/config.py:TrainConfig.of_rank", "run/build.py:Placement", "cli/sweep.py:trials_on_cluster",
        "errors.py:ClusterError", "errors.py:HeadLost",
    ],
    "one policy from the ROM, and one recipe for every stage": [
        "master/", "cli/master.py", "cli/master_board.py", "watch/panel/server.py:create_app.master",
        "starts/trail_search.py", "starts/arrivals.py", "agents/arrivals.py", "cli/explore.py:_collect_arrivals",
        "starts/reverse_curriculum.py:Way.is_wanted", "starts/reverse_curriculum.py:Way.along",
        "run/presets.py:suited_to_stages",
    ],
    "evaluation with intervals, enumerated starts, and the whole game": [
        "agents/intervals.py", "agents/whole_game.py", "agents/evaluation.py:trial_envs",
        "agents/evaluation.py:idle_starts", "agents/evaluation.py:Trial.numbers_starts_of",
    ],
    "levels": [
        "levels/", "cli/levels.py", "envs/custom_levels.py", "envs/level_pool.py", "starts/level_check.py",
        "envs/pool_envs.py:PoolEnvs.set_levels",
    ],
    "an interface for Python, one's own encoders and rewards": [
        "api.py", "custom_code.py", "run/custom_parts.py", "extras.py", "model/encoder.py:CustomEncoder",
        "model/encoder.py:build_encoder", "envs/rewards.py:RewardShaper._custom", "run/loop.py:Outcome.as_dict",
        "run/loop.py:_write_outcome",
    ],
    "a short help, variables for every flag, mistakes named in a sentence": [
        "cli/control.py", "cli/flags.py:checked_words", "cli/flags.py:field_docs", "cli/help.py:help_text",
        "cli/flags.py:blank", "cli/commands.py:misspelt_variables", "cli/commands.py:flags_of_commands",
        "cli/commands.py:settings_of_commands", "cli/train.py:train_help", "cli/train.py:flag_groups",
        "cli/train.py:changes", "cli/info.py:preset_table", "errors.py:nearest",
        "run/session.py:Session.diverge", "checkpoints/finding.py:not_found",
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    revision: str = ""
    """Commit to count; by default the working tree."""


def read_sources(revision: str) -> dict[str, str]:
    """The text of every file, by its path below src/warpzone."""
    command = ["ls-tree", "-r", "--name-only", revision] if revision else ["ls-files"]
    names = [name for name in git(*command, SOURCE).splitlines() if name.endswith(".py")]
    if revision:
        return {name.removeprefix(SOURCE): git("show", f"{revision}:{name}") for name in names}
    return {name.removeprefix(SOURCE): (ROOT / name).read_text() for name in names if (ROOT / name).exists()}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def lines_at(place: str, sources: dict[str, str]) -> int:
    """Lines of a folder, of a file, or of a function or class as file.py:name; 0 where there is none."""
    file, _, name = place.partition(":")
    if not name:
        return sum(text.count("\n") for path, text in sources.items() if path.startswith(file))
    bodies = [ast.parse(sources.get(file, "")).body]
    for part in name.split("."):
        found = [node for body in bodies for node in body if getattr(node, "name", None) == part]
        bodies = [node.body for node in found]  # type: ignore[attr-defined]
    return sum(1 + (node.end_lineno or 0) - first_line(node) for node in found)


def first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])


def main(config: Config) -> None:
    sources = read_sources(config.revision)
    packages = Counter[str]()
    for name, text in sources.items():
        packages[name.partition("/")[0] if "/" in name else "(top)"] += text.count("\n")
    for name, count in sorted(packages.items()):
        print(f"{name:<12} {count:>7,}")
    total = packages.total()
    print(f"{'total':<12} {total:>7,}\n\nof these, files and functions of features that came later:")
    by_files = by_names = total
    for feature, places in LATER.items():
        files = sum(lines_at(place, sources) for place in places if ":" not in place)
        functions = sum(lines_at(place, sources) for place in places if ":" in place)
        by_files -= files
        by_names -= files + functions
        print(f"{files:>7,} + {functions:>4,}  {feature}")
    print(f"{by_files:>7,}  without those files\n{by_names:>7,}  without those functions either")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
