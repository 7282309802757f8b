"""Areas that were decoded and encoded again play as before: the same memory at every frame of a movie.

python bench/level_movie.py MOVIE.fm2 [--out docs/data/level_movie.json]

For every area of the ROM the movie is played twice, on the ROM as it is and on the image whose tables lie in work RAM
with that area decoded and encoded anew. All 2 KB of memory are compared after every frame, but for the four bytes in
which the game keeps where the area lies. (Processor cycles may differ by two within a frame: reading from another place
may cross a page.) Exits 1 at the first other difference.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from identity import movie_buttons
from warpzone import levels
from warpzone.cli.info import made
from warpzone.engine import Machine
from warpzone.engine.rom import rom
from warpzone.levels.image import level_image, level_memory, stage_memory
from warpzone.levels.tables import STAGE_LIST_BYTES, tables

POINTERS = slice(0xE7, 0xEB)
"""Where the game keeps the addresses of the area's objects and enemies."""


def compare(area: int, buttons: list[int]) -> int:
    """Frames in which the area was the one being played, all of them the same."""
    image = rom()
    plain, again = Machine(image), Machine(level_image(image))
    memory = bytearray(level_memory(image, levels.decode(image, area)))
    # Stages begin with the areas they have, so that a bonus room stays one.
    stages = tables(image).table("stages", STAGE_LIST_BYTES)
    place = stage_memory(image).index(stages)
    memory[place : place + len(stages)] = stages
    again.wram[: len(memory)] = np.frombuffer(memory, np.uint8)
    played = 0
    for frame, held in enumerate(buttons):
        plain.step(held, render=False)
        again.step(held, render=False)
        played += not np.array_equal(plain.ram[POINTERS], again.ram[POINTERS])
        again.ram[POINTERS], kept = plain.ram[POINTERS], again.ram[POINTERS].copy()
        if not np.array_equal(plain.ram, again.ram):
            raise SystemExit(f"area {area:02X} differs at frame {frame}")
        again.ram[POINTERS] = kept
    return played


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("movie", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    buttons, console = movie_buttons(given.movie), Console()
    frames = {
        f"{area:02X}": compare(area, buttons) for area in track(levels.all_areas(), "areas", console=console)
    }
    results: dict[str, Any] = {
        **made(), "command": f"python bench/level_movie.py {given.movie.name}", "areas": len(frames),
        "movie_frames": len(buttons), "frames_in_area": frames, "differences": 0,
    }  # fmt: skip
    visited = sum(count > 0 for count in frames.values())
    console.print(
        f"{len(frames)} areas, {visited} of them in the movie: no difference in {len(buttons):,} frames each"
    )
    if given.out:
        given.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
