"""A trail: the buttons of one solution of a stage, from its true start to the flag or the axe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.actions import action_buttons, action_names, parse_buttons
from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.envs.scripts import parse_sequence
from warpzone.envs.telemetry import counts_as_ground, room
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError
from warpzone.watch.durable import write_durably

ACTIONS = "complex"
"""The actions of trails, including those that pipes and vines need."""
SPACING = 24
"""Width of a place, in pixels."""
IN_THE_AIR = 4
"""Decisions between two places in a jump."""
FURTHER = "seed-*"
"""Folders below one of trails, with trails that several seeds have found."""


@dataclass(frozen=True)
class Trail:
    """Found by random search, never by a person. The buttons are enough, as the emulator is deterministic."""

    stage: str
    rom_sha256: str
    frame_skip: int
    decisions: int
    sequence: str
    """As `--scripted-sequence` takes it: 'RIGHT+B:12,NOOP:4', in frames."""
    tried: int = 0
    """Decisions the search needed to find it."""
    seconds: float = 0.0
    """Seconds it took."""

    def actions(self) -> list[int]:
        """Action indices, one per decision."""
        numbers = {parse_buttons(name): i for i, name in enumerate(action_names(ACTIONS))}
        parts = parse_sequence(self.sequence)
        if any(part.buttons not in numbers or part.frames % self.frame_skip for part in parts):
            raise ConfigError(
                f"The trail of {self.stage} has buttons or durations that are not decisions of the {ACTIONS} set."
            )
        return [numbers[part.buttons] for part in parts for _ in range(part.frames // self.frame_skip)]


class Moment(NamedTuple):
    """A moment on a trail, before one of its decisions."""

    snapshot: bytes
    frames: tuple[NDArray[np.uint8], ...]
    """The frames [C, H, W] up to this moment, as many as the agent sees; neighbouring moments share them."""
    buttons: int
    """What the trail does now."""


@dataclass(frozen=True)
class _Visit:
    """A visit to a place: its last decision, and whether the player stood there in the end."""

    place: tuple[int, ...]
    decision: int
    stands: bool
    moments: tuple[Moment, ...] = ()
    """One per decision there."""

    @property
    def room(self) -> tuple[int, ...]:
        """The room of the place, however often a maze has sent the player back."""
        return self.place[1:-2]


def sequence_of(actions: Sequence[int], frame_skip: int) -> str:
    """Actions as text, run-length encoded."""
    names = action_names(ACTIONS)
    return ",".join(f"{names[a]}:{len(list(run)) * frame_skip}" for a, run in groupby(actions))


def save_trail(trail: Trail, folder: Path) -> Path:
    """Write it as STAGE.json."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{trail.stage}.json"
    write_durably(path, json.dumps(asdict(trail), indent=2).encode() + b"\n")
    return path


def of_seed(folder: Path, seed: int) -> Path:
    """The folder for trails of one seed, where stages have several."""
    return folder / FURTHER.replace("*", str(seed))


def load_trail(folder: Path, stage: str, rom_sha256: str | None = None) -> Trail | None:
    """The stage's trail, or None if there is none. With `rom_sha256`, one of another ROM is refused."""
    path = folder / f"{stage}.json"
    try:
        trail = Trail(**json.loads(path.read_text(encoding="utf-8")))
        if trail.stage != stage or not isinstance(trail.sequence, str):
            raise ValueError(f"it has no buttons for {stage}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} is not a trail: {error}.") from error
    if rom_sha256 not in (None, trail.rom_sha256):
        raise ConfigError(f"The trail of {stage} in {folder} is of another ROM: choose another folder.")
    return trail


def places_along(
    trail: Trail, view: ViewConfig, rom: str | None = None, further: Sequence[Trail] = ()
) -> list[tuple[Moment, ...]]:
    """Places on the trail, first to last, each with its moments, for this view. With `further` trails, those of its
    last room have the moments of theirs there too: how Bowser was passed once is seldom the best way past him.
    """
    visits = _visits_along(trail, view, rom)
    for other in further:
        visits = _with_end_of(visits, _visits_along(other, view, rom))
    return [visit.moments for visit in visits]


def _visits_along(trail: Trail, view: ViewConfig, rom: str | None) -> list[_Visit]:
    """The places of a trail.

    The trail is played once. One that no longer ends at the flag is rejected. Each moment leads to the next by what the
    trail does there, so no loop is left out: at its end everything else would be elsewhere, and the agent can't jump in
    time. A place must never be far from the next one, from which the agent can already clear the stage. Hence long
    jumps have places too.
    """
    if trail.frame_skip != view.frame_skip:
        raise ConfigError(
            f"The trail of {trail.stage} holds its buttons for {trail.frame_skip} frames, not {view.frame_skip}."
        )
    plain = view.fixed(action_type=ACTIONS, stall_limit=0, step_limit=0)
    envs: MarioVectorEnv = make_envs(
        plain, 1, [trail.stage], threads=1, frame_stack=1, autoreset_mode="disabled", rom=rom
    )
    try:
        observation, info = envs.reset(seed=0)
        visits: list[_Visit] = []
        buttons, frames = action_buttons(ACTIONS), ()
        for decision, action in enumerate(trail.actions()):
            frames = (*frames, observation[0].copy())[-view.frame_stack :]
            ram = envs.ram[0]
            x, y, sent_back = (int(info[name][0]) for name in ("x_pos", "y_pos", "wrong_turns"))
            place = (sent_back, *room(ram), x // SPACING, y // SPACING)
            stands = counts_as_ground(ram, stood_only=True)
            moment = Moment(envs.snapshot(0), frames, buttons[action])
            _visit(visits, _Visit(place, decision, stands, (moment,)))
            observation, _, terminated, _, info = envs.step(np.array([action]))
            if terminated[0]:
                break
        if not (terminated[0] and info["flag_get"][0]):
            raise ConfigError(f"The trail of {trail.stage} does not lead to its end with this ROM.")
        return _thinned(visits)
    finally:
        envs.close()


def _with_end_of(visits: Sequence[_Visit], other: Sequence[_Visit]) -> list[_Visit]:
    """The places of a trail, with the moments of another one in its last room, each at the place next to it."""
    merged = list(visits)
    ours, theirs = _last_room(visits), _last_room(other)
    if ours[0].room == theirs[0].room:
        for visit in theirs:
            nearest = min(range(len(ours)), key=lambda i: abs(ours[i].place[-2] - visit.place[-2]))
            at = len(visits) - len(ours) + nearest
            merged[at] = replace(merged[at], moments=merged[at].moments + visit.moments)
    return merged


def _last_room(visits: Sequence[_Visit]) -> list[_Visit]:
    """The visits from the last entry of the last room on."""
    first = len(visits)
    while first and visits[first - 1].room == visits[-1].room:
        first -= 1
    return list(visits[first:])


def _visit(visits: list[_Visit], now: _Visit) -> None:
    """Add a visit: merge it with the last if that continues."""
    if visits and visits[-1].place == now.place:
        visits[-1] = replace(now, moments=visits[-1].moments + now.moments)
    else:
        visits.append(now)


def _thinned(visits: Sequence[_Visit]) -> list[_Visit]:
    """The first place, all on the ground, and in the air one at an interval; others are moments of the one before."""
    kept: list[_Visit] = []
    for visit in visits:
        if visit.stands or not kept or visit.decision - kept[-1].decision >= IN_THE_AIR:
            kept.append(visit)
        else:
            kept[-1] = replace(kept[-1], moments=kept[-1].moments + visit.moments)
    return kept


def load_ways(
    folder: str, stages: Sequence[str], view: ViewConfig, rom_sha256: str, rom: str | None = None
) -> dict[int, list[tuple[Moment, ...]]]:
    """The places along the trail of each stage, by its number, for those that have one in the folder."""
    if folder in ("", "auto"):
        return {}
    trails = {i: load_trail(Path(folder), stage, rom_sha256) for i, stage in enumerate(stages)}
    if not any(trails.values()):
        raise ConfigError(f"{folder} has no trail of {', '.join(stages)}: find one with `warpzone explore`.")
    return {
        i: places_along(trail, view, rom, further_trails(folder, trail, rom_sha256))
        for i, trail in trails.items()
        if trail is not None
    }


def further_trails(folder: str, trail: Trail, rom_sha256: str) -> list[Trail]:
    """Other trails of the same stage, and with decisions of the same length, from the folders of further seeds."""
    found = [load_trail(path, trail.stage, rom_sha256) for path in sorted(Path(folder).glob(FURTHER))]
    fitting = [other for other in found if other and other.frame_skip == trail.frame_skip]
    return [other for other in fitting if other.sequence != trail.sequence]
