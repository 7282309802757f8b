"""One environment controlled by the buttons of every frame, as a person plays."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from warpzone.engine import FIELDS, Pool
from warpzone.envs.config import ViewConfig
from warpzone.envs.custom_levels import LevelStages
from warpzone.envs.stages import parse_stage
from warpzone.errors import ConfigError
from warpzone.levels.format import LevelData

_ALL_BUTTONS = list(range(256))
_AUTORESET_DISABLED = 2


class ButtonEnv:
    """An episode of a stage or a level, frame by frame, with any combination of the eight buttons.

    It begins, ends and skips scenes exactly as an episode of `MarioVectorEnv` does, so its snapshots are starts for
    environments with the same view. The first episode has begun when it is made.
    """

    def __init__(
        self,
        stage: str | LevelData,
        rom: bytes,
        *,
        region: str = "ntsc",
        lost_levels: bool = False,
        view: ViewConfig | None = None,
    ) -> None:
        if region not in ("ntsc", "pal"):
            raise ConfigError(f"Unknown region {region!r}: choose 'ntsc' or 'pal'.")
        # A snapshot holds one frame; the environment that begins from it fills its stack with that.
        view = (view or ViewConfig()).fixed(
            frame_skip=1, frame_stack=1, max_pool=False, ground="reached", stall_limit=0, step_limit=0
        )  # fmt: skip
        settings = view.pool_settings
        settings.update({
            "actions": _ALL_BUTTONS, "autoreset": _AUTORESET_DISABLED, "pal": region == "pal",
            "lost_levels": lost_levels, "pin": False,
        })  # fmt: skip
        if isinstance(stage, str):
            settings["stages"] = [parse_stage(stage, lost_levels=lost_levels)]
        else:
            level = LevelStages(rom, [], [stage], lost_levels)
            rom = level.image
            settings.update(level.settings())
        self._pool = Pool(rom, **settings)
        pictures = np.empty((2, 1, *view.shape), np.uint8)
        self._telemetry = np.empty((len(FIELDS), 1), np.int32)
        self._terminated, self._truncated = np.empty(1, np.bool_), np.empty(1, np.bool_)
        self._results = (
            pictures[0], self._telemetry, self._terminated, self._truncated, pictures[1],
            np.empty_like(self._telemetry),
        )  # fmt: skip
        self.restart()

    def restart(self) -> None:
        """Begin the stage again."""
        self._pool.reset(None, np.zeros(1, np.uint64), None, *self._results)

    def press(self, buttons: int) -> None:
        """One frame with these buttons held; an error after the end of the episode."""
        self._pool.step(np.array([buttons], np.int64), *self._results)

    @property
    def over(self) -> bool:
        return bool(self._terminated[0] or self._truncated[0])

    @property
    def telemetry(self) -> dict[str, int]:
        """The fields of `MarioVectorEnv`'s info, as the engine gives them."""
        return dict(zip(FIELDS, self._telemetry[:, 0].tolist(), strict=True))

    @property
    def ram(self) -> NDArray[np.uint8]:
        """A copy of the RAM, uint8 [2048]."""
        out = np.empty(2048, np.uint8)
        self._pool.copy_ram(out)
        return out

    def ram_sha256(self) -> str:
        """Digest of the RAM, by which two plays are compared."""
        return hashlib.sha256(self.ram.tobytes()).hexdigest()

    def screen(self) -> NDArray[np.uint8]:
        """The last frame, uint8 [240, 256, 3]."""
        return self._pool.screen(0)

    def snapshot(self) -> bytes:
        """A start for `MarioVectorEnv.reset(options={"snapshot": ...})` with the same view."""
        return self._pool.snapshot(0, 1)
