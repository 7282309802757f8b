"""`make release-check`: everything a release has to pass, step by step, with a summary at the end.

A failed step does not stop the others; the exit status is 1 if there is one. `--only` and `--skip` choose steps.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import requires
from pathlib import Path

from wheels.commands import ROOT

OUT = ROOT / "build" / "release"
BIN = Path(sys.executable).parent


def step(*commands: list[object], **environ: str) -> Callable[[], bool]:
    """Commands that all have to succeed; what they print is shown as it comes."""

    def take() -> bool:
        settings = {**os.environ, **environ}
        return all(
            subprocess.run(list(map(str, words)), cwd=ROOT, env=settings).returncode == 0
            for words in commands
        )

    return take


def extra(name: str) -> list[str]:
    """The requirements of an extra."""
    return [word.partition(";")[0] for word in requires("warpzone") or [] if f'extra == "{name}"' in word]


def installs_and_trains() -> bool:
    """Build a source archive and from it a wheel, install that into a fresh environment, train and evaluate."""
    inside, runs = OUT / "env" / "bin", OUT / "runs"
    build = step(
        [sys.executable, "-m", "build", "--outdir", OUT], [sys.executable, "-m", "venv", OUT / "env"]
    )
    if not build():
        return False
    (wheel,) = OUT.glob("*.whl")
    return step(
        [inside / "python", "-m", "pip", "install", "--quiet", "-c", "constraints.txt", f"{wheel}[train]"],
        [
            inside / "warpzone",
            "train",
            "--runs-dir",
            runs,
            "--total-updates",
            2,
            "--no-record-video",
            "--plain",
        ],
        [
            inside / "warpzone",
            "eval",
            "--runs-dir",
            runs,
            "--checkpoint",
            "mario",
            "--episodes",
            2,
            "--mode",
            "sampled",
        ],
    )()


STEPS: dict[str, tuple[str, Callable[[], bool]]] = {
    "tests": ("lint, types and the whole test suite", step(["make", "test-all"])),
    "figures": (
        "figures on the pages equal their files",
        step([sys.executable, "bench/figures.py", "--check"]),
    ),
    "links": (
        "links between pages lead somewhere, and every page is in the navigation",
        step([sys.executable, "-m", "pytest", "-n", "0", "tests/docs/test_pages.py"]),
    ),
    "docs": (
        "the documentation builds without a warning",
        step(
            [sys.executable, "-m", "pip", "install", "--quiet", "-c", "constraints.txt", *extra("docs")],
            [BIN / "mkdocs", "build", "--strict", "--quiet"],
            NO_MKDOCS_2_WARNING="1",
        ),
    ),
    "install": (
        "the source archive becomes a wheel that installs, trains and evaluates",
        installs_and_trains,
    ),
    "wheel": (
        "a portable wheel for this machine plays the same bytes",
        step([sys.executable, "-m", "wheels", "--here", "--out", OUT / "portable"]),
    ),
}


def say(line: str) -> None:
    print(f"[release] {line}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m wheels.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="steps:\n" + "\n".join(f"  {name:10}{about}" for name, (about, _) in STEPS.items()),
    )
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), help="steps to take")
    parser.add_argument("--skip", nargs="+", choices=STEPS, default=[], help="steps to leave out")
    options = parser.parse_args()
    chosen = [name for name in STEPS if name in options.only and name not in options.skip]
    shutil.rmtree(OUT, ignore_errors=True)
    outcomes: dict[str, str] = {}
    for number, name in enumerate(chosen, start=1):
        about, take = STEPS[name]
        say(f"{number} of {len(chosen)}, {name}: {about}")
        began = time.monotonic()
        outcomes[name] = f"{'passed' if take() else 'FAILED'} in {time.monotonic() - began:.0f} s"
        say(f"{name}: {outcomes[name]}")
    say("summary")
    for name in STEPS:
        say(f"  {name:10}{outcomes.get(name, 'left out')}")
    return int(any("FAILED" in outcome for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
