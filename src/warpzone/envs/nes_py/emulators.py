"""An emulator as an episode needs it, frame by frame: gym-super-mario-bros, or any Gymnasium environment."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from warpzone.envs.nes_py.config import BackendError
from warpzone.envs.nes_py.patches import patch_nes_py, quiet_gym
from warpzone.envs.stages import parse_stage

Log = Callable[[str], None]
"""Called with the stage of the start that begins: patch, import, make."""


class Emulator(Protocol):
    """One emulator with the game in it."""

    frames: int
    """Frames run since `begin`."""

    @property
    def ram(self) -> NDArray[np.uint8] | None:
        """The work RAM, if the backend shows it."""

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The last frame, uint8 [240, 256, 3], in memory the next frame may overwrite."""

    @property
    def info(self) -> Mapping[str, Any]:
        """What the backend reports beyond RAM, such as `x_pos`."""

    def begin(self, stage: str) -> None:
        """Go to the first frame of a stage in which the player is in control."""

    def play(self, buttons: int) -> None:
        """Run one frame."""

    def skip_scenes(self) -> None:
        """Fast-forward through scenes without control, if the backend can."""

    def close(self) -> None: ...


class EmulatorFactory(Protocol):
    """Makes an emulator in the process that calls it; picklable, so that it can be sent to workers."""

    def __call__(self, log: Log) -> Emulator: ...


@dataclass(frozen=True)
class NesPyFactory:
    """Emulators of gym-super-mario-bros. The first stage is made at once, others when they are first played."""

    first_stage: str = "1-1"
    rom: str | None = None

    def __call__(self, log: Log) -> Emulator:
        log("patch")
        patch_nes_py()
        log("import")
        with quiet_gym():
            import gym_super_mario_bros  # noqa: F401
        log("make")
        emulator = NesPyEmulator(self.rom)
        emulator.begin(self.first_stage)
        return emulator


class NesPyEmulator:
    """gym-super-mario-bros 7 or 9, frame by frame. One instance per stage, since each can reset to one start only."""

    info: Mapping[str, Any] = {}

    def __init__(self, rom: str | None = None) -> None:
        self._rom = rom
        self._of_stage: dict[str, Any] = {}
        self._env: Any = None
        self.frames = 0

    @property
    def ram(self) -> NDArray[np.uint8]:
        ram: NDArray[np.uint8] = self._env.ram
        return ram

    @property
    def screen(self) -> NDArray[np.uint8]:
        screen: NDArray[np.uint8] = self._env.screen
        return screen

    def begin(self, stage: str) -> None:
        if stage not in self._of_stage:
            self._of_stage[stage] = self._make(stage)
        self._env = self._of_stage[stage]
        self._env.reset()
        self.frames = 0

    def play(self, buttons: int) -> None:
        self._env._frame_advance(buttons)

    def skip_scenes(self) -> None:
        self._env._did_step(False)

    def close(self) -> None:
        for env in self._of_stage.values():
            env.close()
        self._of_stage = {}

    def _make(self, stage: str) -> Any:
        from gym_super_mario_bros import SuperMarioBrosEnv, smb_env

        target = parse_stage(stage)
        kept = {
            name: getattr(smb_env, name) for name in ("rom_path", "smb1_rom_path") if hasattr(smb_env, name)
        }
        try:
            if self._rom:
                # The package knows only its own ROM, under a name that differs between 7 and 9.
                for name in kept:
                    setattr(smb_env, name, lambda *_: self._rom)
            env = SuperMarioBrosEnv(target=None if target == (0, 0) else target)
        finally:
            for name, function in kept.items():
                setattr(smb_env, name, function)
        advance = env._frame_advance

        def counted(buttons: int) -> None:
            self.frames += 1
            advance(buttons)

        env._frame_advance = counted
        return env


class GymnasiumEmulator:
    """Any Gymnasium environment with frames as observations and readable RAM.

    `ram_of` finds the RAM in the environment; by default its `ram` attribute. `action_of` turns buttons
    (bits 7..0) into the environment's action. The environment decides where it begins: for another
    stage there is one warning (`MARIO_SUPPRESS_FC_STAGE_WARN=1`: none), or an error (`MARIO_FC_STRICT_STAGE=1`).
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        stage: str | None = None,
        ram_of: Callable[[Any], NDArray[np.uint8] | None] | None = None,
        action_of: Callable[[int], Any] = int,
    ) -> None:
        self._env = env
        self._stage = stage
        self._ram_of = ram_of or (lambda e: getattr(e.unwrapped, "ram", None))
        self._action_of = action_of
        self._warned: set[str] = set()
        self._screen = np.zeros((240, 256, 3), np.uint8)
        self.info: Mapping[str, Any] = {}
        self.frames = 0

    @property
    def ram(self) -> NDArray[np.uint8] | None:
        return self._ram_of(self._env)

    @property
    def screen(self) -> NDArray[np.uint8]:
        return self._screen

    def begin(self, stage: str) -> None:
        if stage != self._stage and stage not in self._warned:
            text = f"[env][warn] this backend can't start stage {stage}: it plays {self._stage or 'its own'}."
            if os.environ.get("MARIO_FC_STRICT_STAGE") == "1":
                raise BackendError(f"{text[12:]} Unset MARIO_FC_STRICT_STAGE to play anyway.")
            if os.environ.get("MARIO_SUPPRESS_FC_STAGE_WARN") != "1":
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            self._warned.add(stage)
        self._screen, self.info = self._env.reset()
        self.frames = 0

    def play(self, buttons: int) -> None:
        self._screen, _, terminated, truncated, self.info = self._env.step(self._action_of(buttons))
        self.frames += 1
        if terminated or truncated:
            # Ours ends by RAM. A backend that ended its own episode must be reset before it can continue.
            self._screen, self.info = self._env.reset()

    def skip_scenes(self) -> None:
        """Nothing: the memory of other emulators is only read."""

    def close(self) -> None:
        self._env.close()


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what packages raise when an environment can't be made into one sentence for the user."""
    try:
        yield
    except (ImportError, OSError, ValueError, TypeError, ArithmeticError) as error:
        what = f"{type(error).__name__}: {error}"
        raise BackendError(
            f"An environment could not be made ({what}): `warpzone doctor` checks what it needs."
        ) from error
