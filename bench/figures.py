"""Puts the figures of the README and the documentation in from the files that commands wrote to docs/data.

python bench/figures.py [--check]

A figure stands on a page as `<!--figure NAME-->TEXT<!--/figure-->`; `FIGURES` says how each text follows from a file.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from pathlib import Path
from statistics import mean, median

from figure_levels import generalisation, levels
from figure_sources import (
    MODES,
    Figures,
    at_80,
    cluster_model,
    ends,
    faults,
    first_seeds,
    flawless_bound,
    game,
    half_width_32,
    kills_table,
    last_maze,
    learned,
    load,
    lost_nodes,
    master_kills_table,
    master_mean,
    master_rates,
    mastered,
    mastered_all,
    mean_32,
    percent,
    random_starts,
    rates_32,
    stages_table,
    unfinished_master,
    wheels_table,
    with_hosts,
)
from figure_speeds import (
    ENGINE,
    busy,
    compat_speed,
    engine,
    from_enter,
    hosts,
    sharing,
    sixteen_threads,
    startup,
    threads,
    trained_on_hosts,
    trainers,
    training_speed,
    turns,
    wheel_speed,
)

ROOT = Path(__file__).parents[1]
FIRST, AS_TRAINED = "eval-32-first.json", "eval-32-as-trained.json"
GAMES_AS_TRAINED = "game-32-as-trained.json"
GAMES_HURRIED = "game-32-hurried.json"
"""Before 2026-11-19, title cards between stages were skipped by writing to RAM."""
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")])
MARK = re.compile(r"<!--figure ([\w-]+?)-->(.*?)<!--/figure-->", re.DOTALL)

FIGURES: Figures = {
    **busy(1),
    **busy(2),
    **faults(),
    **lost_nodes(),
    **trainers(),
    **levels(),
    **mastered("world-1", "master-world-1.json"),
    "world-1-before-lowest": lambda: percent(min(master_rates("master-world-1-noise.json", "sampled")), 0),
    "world-1-before-sticky": lambda: master_mean("master-world-1-noise.json", "sticky"),
    "world-1-random-start": lambda: master_mean("master-world-1.json", "random start"),
    **mastered_all("master-32", "master-h200.json"),
    **mastered_all("master-32-noise", "master-h200-noise.json"),
    **mastered_all("master-32-hour", "master-h200-hour.json"),
    **unfinished_master(),
    **threads("threads-16", "vector"),
    **threads("threads-16-apart", "emulators that share nothing"),
    **sixteen_threads(),
    **training_speed(),
    **cluster_model(),
    **{
        f"sharing-{kind}": lambda kind=kind: f"{round(median(sharing(kind)), -3):,.0f}"  # type: ignore[misc]
        for kind in ("mps", "without-mps")
    },
    "sharing-times": lambda: f"{median(sharing('mps')) / median(sharing('without-mps')):.1f}",
    **generalisation(),
    "kills-table": kills_table,
    "master-kills-table": master_kills_table,
    "kills": lambda: str(load("kills.json")["kills"]),
    "kills-date": lambda: load("kills.json")["date"],
    "kills-seconds": lambda: f"{load('kills.json')['seconds']:,.0f}",
    "kills-exact": lambda: f"{load('kills.json')['bit_exact_runs']} of {load('kills.json')['runs']}",
    "identity-random": lambda: f"{load('identity.json')['frames']['random']:,}",
    "identity-movie": lambda: f"{load('identity.json')['frames']['movie']:,}",
    "identity-vectors": lambda: f"{load('identity.json')['vectors']['frames']:,}",
    "identity-aarch64-random": lambda: f"{load('identity-aarch64.json')['frames']['random']:,}",
    "identity-aarch64-vectors": lambda: f"{load('identity-aarch64.json')['vectors']['frames']:,}",
    "hosts-decisions": lambda: with_hosts(True),
    "process-decisions": lambda: with_hosts(False),
    **turns("gray"),
    **turns("max"),
    **turns("undrawn"),
    **turns("gray", "-aarch64"),
    **turns("max", "-aarch64"),
    **trained_on_hosts(),
    **hosts(64),
    **hosts(256),
    **ends("1-1-cpu-seconds", lambda: [run["seconds"] for run in learned("1-1")]),
    **ends("1-1-cpu-rate", lambda: [100 * run["clear_rate"] for run in learned("1-1")], ".1f"),
    **ends("1-1-cpu-decisions", lambda: [run["decisions"] / 1e6 for run in learned("1-1")], ".2f"),
    "cpu-stages-table": stages_table,
    "cpu-stages": lambda: str(len(first_seeds())),
    "cpu-stages-at-90": lambda: str(sum(run["clear_rate"] >= 0.9 for run in first_seeds())),
    "1-1-cpu-seeds": lambda: str(len(learned("1-1"))),
    **ends("1-1-h200-seconds", lambda: [run["seconds"] for run in load("learning-h200.json")["runs"]]),
    "1-1-h200-median": lambda: f"{median(run['seconds'] for run in load('learning-h200.json')['runs']):.0f}",
    "1-1-h200-enter-first": lambda: f"{load('learning-h200.json')['runs'][0]['from_enter_s']:.1f}",
    "1-1-h200-enter": lambda: f"{median(from_enter()):.1f}",
    **ends("1-1-h200-enter", from_enter, ".1f"),
    "1-1-h200-runs": lambda: str(len(load("learning-h200.json")["runs"])),
    **ends(
        "1-1-h200-rate",
        lambda: [100 * run["clear_rate"] for run in load("learning-h200.json")["runs"]],
        ".1f",
    ),
    "maze-8-4": lambda: f"{last_maze(lambda run: 100 * run['evaluation']['sampled']['clear_rate'])} %",
    "maze-8-4-low": lambda: last_maze(lambda run: 100 * run["evaluation"]["sampled"]["low"]),
    "maze-8-4-high": lambda: last_maze(lambda run: 100 * run["evaluation"]["sampled"]["high"]),
    "maze-8-4-decisions": lambda: last_maze(lambda run: run["decisions"] / 1e6, ".1f"),
    "maze-8-4-minutes": lambda: (
        f"{max(run['seconds'] for run in load('maze-8-4-three-seeds.json')['runs']) / 60:.0f}"
    ),
    "32-mean": lambda: percent(mean_32("sampled")),
    "32-half-width": lambda: f"{100 * half_width_32():.1f}",
    **ends(
        "32-mean", lambda: [100 * (mean_32("sampled") + sign * half_width_32()) for sign in (-1, 1)], ".1f"
    ),
    "32-lowest": lambda: percent(min(rates_32("sampled")), 0),
    "32-at-80": lambda: at_80("sampled"),
    "32-greedy": lambda: percent(mean_32("greedy")),
    "32-sticky": lambda: percent(mean_32("sticky")),
    "32-first-mean": lambda: percent(mean(rates_32("sampled", FIRST))),
    "32-first-sticky": lambda: percent(mean(rates_32("sticky", FIRST))),
    **{
        f"32-as-trained-{mode}": lambda mode=mode: percent(mean_32(mode, AS_TRAINED))  # type: ignore[misc]
        for mode in MODES
    },
    "32-as-trained-at-80": lambda: at_80("sampled", AS_TRAINED),
    **random_starts("32", "eval-32.json", "eval-32-random-start.json"),
    **random_starts("32-direct", "eval-32.json", "eval-32-random-start-direct.json"),
    **random_starts("32-clock", "eval-32.json", "eval-32-random-clock.json"),
    **random_starts("32-as-trained", AS_TRAINED, "eval-32-random-start-as-trained.json"),
    **random_starts("32-hour", "eval-32-hour.json", "eval-32-hour-random-start.json"),
    "32-run-minutes": lambda: f"{sum(load('master-h200-85.json')['phases'].values()) / 60:.1f}",
    "game-sampled-mean": lambda: game("sampled", "mean_passed_without_death", ".1f"),
    "game-sampled-most": lambda: game("sampled", "most_passed_without_death", "d"),
    "game-sampled-games": lambda: game("sampled", "games", "d"),
    "game-sampled-finished": lambda: game("sampled", "finished", "d"),
    "game-as-trained-mean": lambda: game("sampled", "mean_passed_without_death", ".1f", GAMES_AS_TRAINED),
    "game-as-trained-most": lambda: game("sampled", "most_passed_without_death", "d", GAMES_AS_TRAINED),
    "game-as-trained-finished": lambda: game("sampled", "finished", "d", GAMES_AS_TRAINED),
    "game-sampled-flawless": lambda: game("sampled", "finished_without_death", "d"),
    "game-flawless-low": lambda: flawless_bound(0),
    "game-flawless-high": lambda: flawless_bound(1),
    "game-hurried-mean": lambda: game("sampled", "mean_passed_without_death", ".1f", GAMES_HURRIED),
    "game-hurried-most": lambda: game("sampled", "most_passed_without_death", "d", GAMES_HURRIED),
    "game-hurried-finished": lambda: game("sampled", "finished", "d", GAMES_HURRIED),
    "game-greedy-mean": lambda: game("greedy", "mean_passed_without_death", ".1f"),
    "game-greedy-most": lambda: game("greedy", "most_passed_without_death", "d"),
    "game-sticky-mean": lambda: game("sticky", "mean_passed_without_death", ".1f"),
    **compat_speed(),
    **compat_speed("-aarch64"),
    "compat-load": lambda: f"{load('compat_speed.json')['load']:.1f}",
    **{name: figure for side in ENGINE for name, figure in engine(side).items()},
    **{name: figure for side in ENGINE for name, figure in engine(side, "-aarch64").items()},
    "engine-nes-py": lambda: (
        f"{median(load('engine.json')['frames_per_s']['nes-py, every frame drawn']):,.0f}"
    ),
    "engine-memory": lambda: f"{load('engine.json')['kb_per_environment']:.0f}",
    **startup("first line", "start-line"),
    **startup("first update", "start-update"),
    "start-load": lambda: f"{load('startup.json')['load_average']:.0f}",
    "wheels-table": wheels_table,
    "wheels-date": lambda: load("wheels.json")["date"],
    "wheels-frames": lambda: f"{load('wheels.json')['play']['movie_frames']:,}",
    "wheels-decisions": lambda: str(load("wheels.json")["play"]["decisions"]),
    "wheel-speed": lambda: wheel_speed("median"),
    **{f"wheel-speed-{key}": partial(wheel_speed, key) for key in ("low", "high")},
    "compat-steps": lambda: f"{load('compat_equivalence.json')['totals']['steps']:,}",
    "compat-tapes": lambda: str(len(load("compat_equivalence.json")["results"])),
    "compat-flags": lambda: str(load("compat_equivalence.json")["totals"]["flags"]),
    "compat-episodes": lambda: f"{load('compat_equivalence.json')['totals']['episodes']:,}",
    "compat-differences": lambda: str(
        sum(
            load("compat_equivalence.json")["totals"][key]
            for key in ("info", "reward", "done", "ram", "pixels")
        )
    ),
}


def filled(text: str) -> str:
    """A page with its figures as the files have them."""

    def put(match: re.Match[str]) -> str:
        if match[1] not in FIGURES:
            raise SystemExit(f"There is no figure {match[1]!r}: add it to FIGURES in bench/figures.py.")
        return f"<!--figure {match[1]}-->{FIGURES[match[1]]()}<!--/figure-->"

    return MARK.sub(put, text)


def main(check: bool) -> int:
    stale = []
    for page in PAGES:
        before = page.read_text()
        after = filled(before)
        if after != before:
            stale.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(after)
    used = {name for page in PAGES for name, _ in MARK.findall(page.read_text())}
    unused = sorted(FIGURES.keys() - used)
    if unused:
        print(f"On no page: {', '.join(unused)}.")
    print(f"{'Stale' if check else 'Rewritten'}: {', '.join(stale) or 'none'}.")
    return 1 if check and (stale or unused) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page and its files differ"
    )
    sys.exit(main(parser.parse_args().check))
