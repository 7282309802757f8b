"""Trails that a run finds by itself: random play searches a stage once plain learning makes no progress on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpzone.envs.config import ViewConfig
from warpzone.envs.stages import GAME
from warpzone.starts.exploration import find_trail
from warpzone.starts.trails import Moment, load_trail, places_along, save_trail

MINUTES = 4.0
"""Most time for one search. All 32 stages took at most 40 s each on one core."""


@dataclass(frozen=True)
class TrailSearch:
    """Finds trails for the environments of one run and keeps them in its folder, so that a resumed run has them."""

    folder: Path
    stages: Sequence[str]
    view: ViewConfig
    rom_sha256: str
    rom: str | None
    say: Callable[[str], None]
    should_stop: Callable[[], bool]

    def known(self) -> dict[int, list[tuple[Moment, ...]]]:
        """The places along the trails that were found before, by the number of the stage."""
        trails = {i: load_trail(self.folder, stage) for i, stage in enumerate(self.stages)}
        return {i: places_along(trail, self.view, self.rom) for i, trail in trails.items() if trail}

    def __call__(self, number: int) -> list[tuple[Moment, ...]] | None:
        """Search one stage; the places along its trail, None if there is none in the time, [] if it was stopped."""
        stage = self.stages[number]
        if stage == GAME:
            return None
        if self.should_stop():
            return []
        self.say(f"[train] {stage}: searching for a trail by random play")
        trail = find_trail(
            stage, rom_sha256=self.rom_sha256, frame_skip=self.view.frame_skip, rom=self.rom, minutes=MINUTES,
            should_stop=self.should_stop,
        )  # fmt: skip
        if trail is None and self.should_stop():
            return []
        if trail is None:
            self.say(f"[train][warn] {stage}: no trail found; learning continues from its start")
            return None
        save_trail(trail, self.folder)
        self.say(
            f"[train] {stage}: found a trail of {trail.decisions} decisions in {trail.seconds:.0f} s; "
            "episodes now begin along it, from its end backwards"
        )
        return places_along(trail, self.view, self.rom)
