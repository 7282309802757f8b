"""Wheels for Linux (x86-64 and aarch64, glibc 2.17 and newer), cross-compiled with Zig.

Python 3.10 and 3.11 get a wheel each; one with the stable ABI is for 3.12 and newer. An interpreter of every version
named by `--pythons` has to be here (on the PATH or pyenv's), for its headers. Each wheel for Linux is checked by
auditwheel, installed into a fresh environment and plays; observations, rewards, memory and screens have to equal
those of the environment that runs this. Wheels for aarch64 play under QEMU (package qemu-user-static). One for macOS is
built only if `--systems` names it, and never run; nobody has yet linked it.

Started again, it takes up where it stopped: what was built of the same sources and has played is left as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from wheels.build import assemble, audit, build_module, make_tools, sources, tool_versions
from wheels.commands import ROOT, interpreter, say
from wheels.play import play, played_by
from wheels.targets import FIRST_STABLE, LINUX, PYTHONS, SYSTEMS, Wheel, wanted

SAME = "same bytes"


def parse_options(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m wheels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--systems", nargs="+", default=list(LINUX), choices=SYSTEMS, help="systems to build for")
    add("--pythons", nargs="+", default=list(PYTHONS), choices=PYTHONS, help="versions to build for")
    add("--out", type=Path, default=ROOT / "dist", help="folder for the wheels")
    add("--results", type=Path, help="JSON file of the results (default: wheels.json in that folder)")
    add("--decisions", type=int, default=300, help="decisions of each of four environments")
    add("--movie", type=Path, help=".fm2 movie to play as well")
    add("--frames", type=int, default=0, help="frames of the movie (0 = all)")
    add("--jobs", type=int, default=os.cpu_count(), help="compilers at a time")
    add("--here", action="store_true", help="only the wheel for this machine and Python")
    add("--no-check", action="store_true", help="build only")
    options = parser.parse_args(argv)
    if options.here:
        options.systems = [platform.machine()]
        options.pythons = ["{}.{}".format(*min(sys.version_info[:2], FIRST_STABLE))]
    if options.movie is not None and not options.movie.is_file():
        parser.error(f"there is no movie {options.movie}")
    return options


def movie_words(path: Path | None, frames: int) -> str:
    """The buttons of a movie, a word of two hexadecimal digits for each frame."""
    if path is None:
        return ""
    sys.path.insert(0, str(ROOT / "bench"))
    from identity import movie_buttons

    held = movie_buttons(path)
    return " ".join(f"{buttons:02x}" for buttons in (held[:frames] if frames else held))


def load_results(path: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """What is known of the wheels from earlier starts: nothing if sources or tools were others."""
    try:
        before = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(before, dict) or any(before.get(key) != setting[key] for key in ("sources", "tools")):
        return {}
    same_play = before["play"] == setting["play"]
    return {wheel["tag"]: wheel if same_play else {**wheel, "played": {}} for wheel in before["wheels"]}


def save_results(path: Path, setting: dict[str, Any], known: dict[str, Any]) -> None:
    from warpzone.cli.info import made

    path.parent.mkdir(parents=True, exist_ok=True)
    names = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    document = {**made(), "command": shlex.join(["python", "-m", "wheels", *names]), **setting}
    path.write_text(json.dumps({**document, "wheels": list(known.values())}, indent=2) + "\n")


def is_built(entry: dict[str, Any] | None, out: Path) -> bool:
    file = out / entry["file"] if entry else out
    return bool(entry) and file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == entry["sha256"]


def build(wheel: Wheel, work: Path, out: Path, programs: Path, jobs: int) -> dict[str, Any]:
    """Build a wheel; what is known of it."""
    began = time.monotonic()
    folder = work / wheel.name
    module = build_module(wheel, folder, programs, jobs)
    file = assemble(wheel, module, folder, out, programs)
    entry = {
        "tag": wheel.final_tag,
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "megabytes": round(file.stat().st_size / 1e6, 2),
        "auditwheel": audit(wheel, file, programs) if wheel.system.is_linux else "does not apply",
        "played": {},
    }
    say(f"built {file.name} in {time.monotonic() - began:.0f} s; auditwheel: {entry['auditwheel']}")
    return entry


def main() -> None:
    options = parse_options()
    out, work = options.out.resolve(), ROOT / "build" / "wheels"
    results = options.results or out / "wheels.json"
    wheels = wanted(options.systems, options.pythons)
    for version in sorted({wheel.python for wheel in wheels}):
        if interpreter(version) is None:
            sys.exit(f"[wheels] there is no python{version}: install it, or choose others with --pythons")
    for folder in (out, work):
        folder.mkdir(parents=True, exist_ok=True)
    programs = make_tools(work)
    movie = movie_words(options.movie, options.frames)
    frames = movie.count(" ") + bool(movie)
    expected = "" if options.no_check else played_by([sys.executable], movie, options.decisions)
    play_of = {"decisions": options.decisions, "movie_frames": frames, "digest": expected}
    setting = {"sources": sources(), "tools": tool_versions(programs), "play": play_of}
    known = load_results(results, setting)
    for number, wheel in enumerate(wheels, start=1):
        tag = wheel.final_tag
        say(f"{number} of {len(wheels)}: {tag}{', built before' if is_built(known.get(tag), out) else ''}")
        if not is_built(known.get(tag), out):
            known[tag] = build(wheel, work, out, programs, options.jobs)
            save_results(results, setting, known)
        played = known[tag]["played"]
        for python in [] if options.no_check else wheel.plays_on:
            if played.get(python) != SAME:
                digest = play(wheel, out / known[tag]["file"], python, work, movie, options.decisions)
                if digest != expected and " run: " not in digest:
                    sys.exit(
                        f"[wheels] {tag} plays {digest} with Python {python}, this environment {expected}"
                    )
                played[python] = SAME if digest == expected else digest
                save_results(results, setting, known)
            say(f"{tag}, Python {python}: {played[python]}")
    say(f"{len(wheels)} wheels in {out}, results in {results}")


if __name__ == "__main__":
    main()
