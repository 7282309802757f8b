"""`warpzone play`: play in the browser with the keyboard, and save it as a replay or as a start for environments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from warpzone.cli.flags import parse
from warpzone.cli.settings import Page, Rom
from warpzone.cli.watch import check_access, open_page, serve_app
from warpzone.engine.rom import identify, rom
from warpzone.envs.replays import check_rom, load_replay
from warpzone.envs.stages import parse_stage
from warpzone.errors import ConfigError
from warpzone.levels.files import load as load_level
from warpzone.levels.format import LevelData
from warpzone.run.stopping import EXIT_OK

if TYPE_CHECKING:
    from warpzone.watch.play.cabinet import Cabinet


@dataclass(frozen=True)
class PlayConfig(Rom, Page):
    """Play in the browser with the keyboard, on the emulator that the agents use.

    Arrows move, Z or A is B (run, fire), X or S is A (jump), Enter is Start, Shift is Select; P pauses, R restarts.
    """

    stage: str = "1-1"
    """Stage to start with: 1-1 to 8-4, or game for the whole game."""
    level: Path | None = None
    """Level file to play instead of a stage."""
    start: Path | None = None
    """Saved replay or start state to continue from."""
    out: Path = Path("plays")
    """Folder for saved replays and start states."""
    region: Literal["ntsc", "pal"] = "ntsc"
    """Timing: ntsc (60 frames per second) or pal (50)."""
    port: int = 8421
    """Port to listen on (0 = any free one)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"--out is a folder, and {self.out} is a file.")


SETTINGS = {"": PlayConfig}


def run(argv: list[str]) -> int:
    config = parse(PlayConfig(), argv, "warpzone play")
    if config.level and (config.start or config.stage != PlayConfig.stage):
        raise ConfigError("Give --level, --start or --stage, not two of them.")
    return serve(config, load_level(config.level) if config.level else None)


def serve(config: PlayConfig, level: LevelData | None) -> int:
    """Serve the page until interrupted; the exit code."""
    access = config.token
    check_access(config.host, access)
    image = rom(config.rom or None)
    dump = identify(image)
    parse_stage(config.stage, lost_levels=bool(dump and dump.lost_levels))
    replay = load_replay(config.start) if config.start else None
    if replay is not None:
        check_rom(replay, image)
    if config.dry_run:
        what = config.start or (f"level {level.name}".strip() if level else config.stage)
        print(f"would play {what} at http://{config.host}:{config.port}/")
        return EXIT_OK
    from warpzone.watch.play.cabinet import Cabinet

    cabinet = Cabinet(image, config.stage, replay.region if replay else config.region, level)
    if replay is not None:
        cabinet.open(replay)
    hint = f"Ctrl+C ends the game; what you save is in {config.out}"
    listening = open_page(config, "play", hint, config.out, "")
    try:
        serve_app(build_app(cabinet, config.out, access), listening)
    finally:
        cabinet.close()
    return EXIT_OK


def build_app(cabinet: Cabinet, out: Path, access: str) -> Any:
    """The page of this console."""
    from warpzone.watch.play.saves import Saves
    from warpzone.watch.play.server import create_app

    return create_app(cabinet, Saves(out), access_token=access)
