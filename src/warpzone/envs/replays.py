"""Replays of human play as files: the stage, the buttons of every frame, and a digest of the final RAM.

A replay is a JSON object:

| field | meaning |
|---|---|
| `format`, `version` | `"warpzone replay"`, 1 |
| `rom_md5` | MD5 of the cartridge's content, without the header |
| `region` | `"ntsc"` or `"pal"` |
| `lost_levels` | whether the ROM is one of the Lost Levels |
| `stage` | where it begins: `"1-1"` to `"8-4"`, or `"game"` |
| `frames` | how many there are |
| `buttons` | pairs `[buttons, frames]`: bits 7..0 are right left down up start select B A |
| `ram_sha256` | SHA-256 of the 2,048 bytes of RAM after the last frame |
| `telemetry` | state there: world, stage, x_pos, time, score, ...; for readers only |

The emulator is deterministic: the same buttons lead to the same RAM, which `play_back` checks. A replay is also a
start: an environment with any view can begin where it ends.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from warpzone.engine.rom import content_md5
from warpzone.envs.button_env import ButtonEnv
from warpzone.envs.config import ViewConfig
from warpzone.envs.stages import parse_stage
from warpzone.errors import CheckpointError, ConfigError

FORMAT, VERSION = "warpzone replay", 1
MOST_FRAMES = 1 << 20
"""Almost five hours."""
MOST_BYTES = 16 << 20
"""Size of a file with other buttons in every frame."""


@dataclass(frozen=True)
class Replay:
    """A play from the start of a stage."""

    stage: str
    buttons: bytes
    """One byte for each frame."""
    rom_md5: str
    ram_sha256: str
    region: str = "ntsc"
    lost_levels: bool = False
    telemetry: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """The bytes of the file."""
        runs = [[held, sum(1 for _ in frames)] for held, frames in itertools.groupby(self.buttons)]
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "rom_md5": self.rom_md5,
            "region": self.region,
            "lost_levels": self.lost_levels,
            "stage": self.stage,
            "frames": len(self.buttons),
            "ram_sha256": self.ram_sha256,
            "telemetry": self.telemetry,
            "buttons": runs,
        }
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def parse_replay(data: bytes, name: str = "The replay") -> Replay:
    """The replay in the bytes of a file; CheckpointError says what is wrong with them."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        raise CheckpointError(f"{name} is not JSON: give a file that warpzone play saved.") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise CheckpointError(f"{name} is not a replay: give a file that warpzone play saved.")
    if fields.get("version") != VERSION:
        found = str(fields.get("version"))[:20]
        raise CheckpointError(f"{name} has format version {found}, this program reads {VERSION}.")
    try:
        return _checked(fields)
    except (KeyError, TypeError, ValueError) as error:
        what = f"field {error}" if isinstance(error, KeyError) else str(error)
        raise CheckpointError(f"{name} is damaged: {what}.") from None


def _checked(fields: dict[str, Any]) -> Replay:
    lost_levels, region, stage = fields["lost_levels"], fields["region"], fields["stage"]
    if not isinstance(lost_levels, bool) or region not in ("ntsc", "pal") or not isinstance(stage, str):
        raise ValueError("it names an unknown region or stage")
    try:
        parse_stage(stage, lost_levels=lost_levels)
    except ConfigError as error:
        raise ValueError(str(error).rstrip(".")) from None
    digests = fields["rom_md5"], fields["ram_sha256"]
    for digest, length in zip(digests, (32, 64), strict=True):
        if not isinstance(digest, str) or not re.fullmatch(rf"[0-9a-f]{{{length}}}", digest):
            raise ValueError("a digest is malformed")
    telemetry = fields.get("telemetry", {})
    if not isinstance(telemetry, dict) or not all(isinstance(v, int) for v in telemetry.values()):
        raise ValueError("its telemetry is not made of numbers")
    buttons = bytearray()
    for held, frames in fields["buttons"]:
        if not _is_number(held, 0, 255) or not _is_number(frames, 1, MOST_FRAMES - len(buttons)):
            raise ValueError("buttons are pairs of 0 to 255 and a number of frames")
        buttons += bytes([held]) * frames
    if fields["frames"] != len(buttons):
        raise ValueError("the number of frames is wrong")
    return Replay(stage, bytes(buttons), *digests, region, lost_levels, telemetry)


def _is_number(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def load_replay(path: str | os.PathLike[str]) -> Replay:
    """The replay in a file."""
    found = Path(path)
    try:
        if found.stat().st_size > MOST_BYTES:
            raise CheckpointError(f"{found} is too large for a replay.")
        data = found.read_bytes()
    except OSError as error:
        raise CheckpointError(f"The replay {found} can't be read: {error.strerror or error}.") from None
    return parse_replay(data, str(found))


def recorded(
    env: ButtonEnv, stage: str, buttons: bytes, rom: bytes, region: str, lost_levels: bool
) -> Replay:
    """The replay of an episode up to now."""
    return Replay(
        stage, buttons, content_md5(rom), env.ram_sha256(), region, lost_levels, telemetry=env.telemetry
    )


def check_rom(replay: Replay, rom: bytes) -> None:
    """Refuse a replay of another cartridge."""
    if content_md5(rom) != replay.rom_md5:
        raise CheckpointError(
            f"The replay was played with another ROM (MD5 {replay.rom_md5}): name that one by WARPZONE_ROM or --rom."
        )


def playing(replay: Replay, rom: bytes, view: ViewConfig | None = None) -> Iterator[ButtonEnv]:
    """Play it again: yields the environment before the first frame and after each. The RAM is checked at the end."""
    check_rom(replay, rom)
    env = ButtonEnv(replay.stage, rom, region=replay.region, lost_levels=replay.lost_levels, view=view)
    for number, held in enumerate(replay.buttons):
        yield env
        if env.over:
            raise CheckpointError(
                f"The replay does not fit this engine: its episode ended {len(replay.buttons) - number} frames early."
            )
        env.press(held)
    if env.ram_sha256() != replay.ram_sha256:
        raise CheckpointError(
            f"The replay does not fit this engine: after its {len(replay.buttons)} frames the RAM differs."
        )
    yield env


def play_back(replay: Replay, rom: bytes, view: ViewConfig | None = None) -> ButtonEnv:
    """The environment after the last frame, with the same RAM as when it was played."""
    for env in playing(replay, rom, view):
        last = env
    return last


def as_snapshot(
    start: bytes | str | os.PathLike[str], view: ViewConfig, rom: bytes, region: str = "ntsc"
) -> bytes:
    """A snapshot for environments with this view: the end of a replay (its file or bytes), or a snapshot as it is."""
    if isinstance(start, str | os.PathLike):
        return _end_of(load_replay(start), view, rom, region)
    if not isinstance(start, bytes | bytearray | memoryview):
        raise ConfigError(f"A snapshot is bytes or a file, not {type(start).__name__}.")
    data = bytes(start)
    return _end_of(parse_replay(data), view, rom, region) if data.startswith(b"{") else data


def _end_of(replay: Replay, view: ViewConfig, rom: bytes, region: str) -> bytes:
    if replay.region != region:
        raise CheckpointError(f"The replay was played with region={replay.region!r}, not {region!r}.")
    # The frame does not depend on what the agent may do there.
    seen = ViewConfig(
        size=view.size, observation=view.observation, palette=view.palette, crop_hud=view.crop_hud
    )
    return _snapshot_at_end(replay.to_json(), seen, rom)


@lru_cache(maxsize=32)
def _snapshot_at_end(data: bytes, view: ViewConfig, rom: bytes) -> bytes:
    env = play_back(parse_replay(data), rom, view)
    if env.over:
        raise CheckpointError("The replay can't be a start: its episode is over where it ends.")
    return env.snapshot()
