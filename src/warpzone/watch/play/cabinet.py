"""An emulator that one person plays and others watch. It runs in its own thread, at the speed of a real NES."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from warpzone.engine.rom import identify
from warpzone.envs.button_env import ButtonEnv
from warpzone.envs.replays import MOST_FRAMES, Replay, play_back, recorded
from warpzone.envs.stages import ALL_STAGES, GAME, parse_stages
from warpzone.envs.telemetry import ENDS
from warpzone.errors import ConfigError, Error
from warpzone.levels.format import LevelData
from warpzone.watch.panel.player import Shown, encode

FRAMES_PER_S = {"ntsc": 60.0988, "pal": 50.0070}
HOLD_S = 2.0
"""Keys are released when the page has not repeated them for this long. It does so twice a second."""
MOST_LATE_S = 0.1
"""Delays beyond this are not made up for: the game slows down instead."""
MOST_UNDRAWN = 3
IDLE_S = 0.5
"""How often a paused emulator sends its frame."""
PICTURES_WAITING, TEXTS_WAITING = 4, 64
LEVEL = "level"
"""Stands for the level that was given, among the names of stages."""
STATUS = ("small", "tall", "fireball")


@dataclass(eq=False)
class Seat:
    """An open page."""

    queue: asyncio.Queue[bytes | str] = field(default_factory=asyncio.Queue)

    def tell(self, message: bytes | str) -> None:
        """Queue a message. A slow page misses frames first, and everything in the end."""
        if self.queue.qsize() < (PICTURES_WAITING if isinstance(message, bytes) else TEXTS_WAITING):
            self.queue.put_nowait(message)


class Cabinet:
    """The first seat plays; when it leaves, the game pauses and the next one gets the controls.

    `join`, `leave` and `tell` belong to the event loop; everything else may be called by any thread. With
    every seat empty the game is paused.
    """

    def __init__(
        self, rom: bytes, stage: str = "1-1", region: str = "ntsc", level: LevelData | None = None
    ) -> None:
        dump = identify(rom)
        self.rom, self.region = rom, region
        self.lost_levels = bool(dump and dump.lost_levels)
        self._level = level
        self.stage = stage if level is None else LEVEL
        self._env = self._console(self.stage)
        self._played = bytearray()
        self._lock = threading.Lock()
        """Guards the emulator and its recording."""
        self._seats: list[Seat] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held = self._tapped = self._shown_buttons = 0
        self._held_until = 0.0
        self._paused = self._closed = False
        self._pace = 0.0
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def stages(self) -> list[str]:
        """All that can be chosen."""
        stages = [*parse_stages("all", lost_levels=self.lost_levels), GAME]
        return stages if self._level is None else [LEVEL, *stages]

    # ---- seats ----

    @property
    def viewers(self) -> int:
        return len(self._seats)

    def join(self) -> Seat:
        """A seat for a newly opened page."""
        seat = Seat()
        self._seats.append(seat)
        self._loop = asyncio.get_running_loop()
        self._tell_places()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="cabinet", daemon=True)
            self._thread.start()
        self._wake.set()
        return seat

    def leave(self, seat: Seat) -> None:
        """Give up the seat; the player's buttons are released."""
        if self.has_controls(seat):
            self._held = self._tapped = 0
            self._paused = True
        self._seats.remove(seat)
        self._tell_places()
        self._wake.set()

    def has_controls(self, seat: Seat) -> bool:
        return bool(self._seats) and self._seats[0] is seat

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to every seat."""
        for seat in self._seats:
            seat.tell(json.dumps(message))

    def _tell_places(self) -> None:
        for seat in self._seats:
            place = {"type": "place", "player": self.has_controls(seat), "viewers": self.viewers}
            seat.tell(json.dumps(place))

    # ---- the game ----

    def hold(self, buttons: int) -> None:
        """Hold these buttons. One released before the next frame still counts for that frame."""
        with self._lock:
            self._tapped |= buttons & ~self._held
            self._held = buttons
            self._held_until = time.monotonic() + HOLD_S

    def pause(self, paused: bool) -> None:
        """Pause, or continue with the buttons held then."""
        self._paused, self._tapped = paused, 0
        self._wake.set()

    def restart(self, stage: str = "") -> None:
        """Start a stage, or restart the current one."""
        stage = stage or self.stage
        self._insert(self._console(stage), stage, b"", paused=False)

    def open(self, replay: Replay) -> None:
        """Go to the end of a replay, paused, to continue from there."""
        if replay.region != self.region:
            raise ConfigError(
                f"The replay was recorded with --region {replay.region}, but this page uses {self.region}."
            )
        self._insert(play_back(replay, self.rom), replay.stage, replay.buttons, paused=True)

    def recording(self, *, as_start: bool = False) -> Replay:
        """What was played since the start of the stage."""
        if self.stage == LEVEL:
            raise ConfigError("Replays and starts are of stages: what is played on a level can't be saved.")
        with self._lock:
            if as_start and self._env.over:
                raise ConfigError(
                    "The episode is over, and a start must lie before its end: restart the stage first."
                )
            played = bytes(self._played)
            return recorded(self._env, self.stage, played, self.rom, self.region, self.lost_levels)

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(5)

    def _console(self, stage: str) -> ButtonEnv:
        what = self._level if stage == LEVEL and self._level is not None else stage
        return ButtonEnv(what, self.rom, region=self.region, lost_levels=self.lost_levels)

    def _insert(self, env: ButtonEnv, stage: str, played: bytes, *, paused: bool) -> None:
        with self._lock:
            self._env, self.stage, self._played = env, stage, bytearray(played)
            self._tapped = 0
            self._paused = paused
        self._wake.set()

    # ---- the thread ----

    def _run(self) -> None:
        due = counted_from = time.monotonic()
        counted = undrawn = 0
        frame_s = 1 / FRAMES_PER_S[self.region]
        while not self._closed:
            if not self._seats or self._paused or self._env.over:
                if self._seats:
                    self._publish(encode(self._look()))
                self._wake.wait(IDLE_S if self._seats else None)
                self._wake.clear()
                due = counted_from = time.monotonic()
                counted = 0
                continue
            try:
                self._frame()
            except Error as error:
                self._paused = True
                self._publish(json.dumps({"type": "said", "text": str(error), "good": False}))
                continue
            counted += 1
            due += frame_s
            now = time.monotonic()
            if now - counted_from > 1:
                self._pace, counted, counted_from = counted / (now - counted_from), 0, now
            # When late, skip rendered frames before game frames.
            if now < due or undrawn == MOST_UNDRAWN:
                self._publish(encode(self._look()))
                undrawn = 0
            else:
                undrawn += 1
            due = max(due, time.monotonic() - MOST_LATE_S)
            time.sleep(max(0.0, due - time.monotonic()))

    def _frame(self) -> None:
        with self._lock:
            if len(self._played) >= MOST_FRAMES:
                raise ConfigError(f"A replay has at most {MOST_FRAMES:,} frames: restart.")
            if time.monotonic() > self._held_until:
                self._held = 0
            buttons, self._tapped = self._held | self._tapped, 0
            self._env.press(buttons)
            self._played.append(buttons)
            self._shown_buttons = buttons

    def _look(self) -> Shown:
        with self._lock:
            told, screen = self._env.telemetry, self._env.screen()
            facts = {
                "start": self.stage,
                "stage": f"{told['world']}-{told['stage']}",
                "x": told["x_pos"],
                "time": told["time"],
                "score": told["score"],
                "coins": told["coins"],
                "lives": told["life"] + 1 if told["life"] < 255 else 0,
                "status": STATUS[min(told["status"], 2)],
                "frames": len(self._played),
                "buttons": self._shown_buttons,
                "paused": self._paused,
                "end": ENDS[told["end"]],
                "cleared": bool(told["flag_get"]),
                "next": _stage_after(self.stage, self.stages),
                "pace": round(self._pace, 1),
            }
        return Shown(screen, 1, facts)

    def _publish(self, message: bytes | str) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._deliver, message)

    def _deliver(self, message: bytes | str) -> None:
        for seat in self._seats:
            seat.tell(message)


def _stage_after(stage: str, stages: list[str]) -> str:
    """The next stage of the game; the same if it is the last."""
    if stage not in ALL_STAGES:
        return stage
    at = stages.index(stage) + 1
    return stages[at] if stages[at] != GAME else stage
