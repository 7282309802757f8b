"""Many of these environments at once, stepped by the engine on its own threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from warpzone.compat.emulation import SCREEN_SHAPE_24_BIT
from warpzone.compat.ids import IDS, Entry
from warpzone.compat.joypad import Joypad
from warpzone.compat.mario import STATUS
from warpzone.compat.random_stages import STAGES, WORLDS, draw_stage
from warpzone.compat.rom import decode_target, playable, rom_path
from warpzone.engine._native import CompatVector
from warpzone.envs.config import thread_count
from warpzone.envs.stages import ALL_STAGES
from warpzone.envs.vector import autoreset_of
from warpzone.errors import ConfigError

FIELDS = ("coins", "flag_get", "life", "score", "stage", "status", "time", "world", "x_pos", "y_pos")
_STATUS_NAMES = np.array([STATUS.get(value, "fireball") for value in range(3)], dtype=object)


def _entry(id: str) -> Entry:
    if id not in IDS:
        raise ConfigError(
            f"There is no environment {id!r}: ids look like SuperMarioBros-1-1-v0 or SuperMarioBros-v0."
        )
    return IDS[id]


def _checked(stages: Sequence[str] | None) -> Sequence[str] | None:
    """The stages to choose from, if all of them are some."""
    listed = isinstance(stages, Sequence | np.ndarray) and all(stage in ALL_STAGES for stage in stages)
    if stages is not None and not listed:
        raise ConfigError(f"stages is a list of names from '1-1' to '8-4', not {stages!r}.")
    return stages


class MarioVector(VectorEnv[NDArray[np.uint8], NDArray[np.int64], Any]):
    """`num_envs` environments of one id, each the same step by step as a single one.

    Observations are frames [num_envs, 240, 256, 3], each step in an array of its own: its memory is used again only
    when nothing refers to it any more. It is read-only, as only what has changed is painted anew then; one that is
    `writable` is painted whole. With `copy=False` it is always the same array. `actions` is a list for JoypadSpace;
    without it, actions are bytes.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(
        self,
        id: str,
        num_envs: int,
        *,
        actions: Sequence[Sequence[str]] | None = None,
        stages: Sequence[str] | None = None,
        threads: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        writable: bool = False,
        render_mode: str | None = None,
    ) -> None:
        entry = _entry(id)
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ConfigError(f"num_envs must be a whole number above zero, not {num_envs!r}.")
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"Unknown render mode {render_mode!r}: the only one is 'rgb_array'.")
        if writable and not copy:
            raise ConfigError("copy=False returns the same array at every step, which is never writable.")
        if stages is not None and not entry.random:
            raise ConfigError(
                f"{id} plays one thing: stages are for SuperMarioBrosRandomStages-v0 and the like."
            )
        self.num_envs = num_envs
        self.render_mode = render_mode
        self._mode = autoreset_of(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        self._copy, self._writable = copy, writable
        self._stages = _checked(stages)
        self._random = entry.random
        self.single_observation_space = gym.spaces.Box(0, 255, SCREEN_SHAPE_24_BIT, np.uint8)
        held = self._action_bytes(actions)
        self._last_action = len(held) - 1
        self.single_action_space = gym.spaces.Discrete(len(held))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._start = np.zeros(num_envs, np.int64)
        self._info = np.zeros((len(FIELDS), num_envs), np.int64)
        self._reward = np.zeros(num_envs, np.float64)
        self._done = np.ones(num_envs, np.bool_)
        self._all = np.ones(num_envs, np.bool_)
        self._all.flags.writeable = False  # callers get views of it at every step
        self._blank = {**dict.fromkeys(FIELDS), **{f"_{name}": self._all for name in FIELDS}}
        self._begun = False
        self._generators = [np.random.RandomState() for _ in range(num_envs)]
        rom = playable(rom_path(entry.arguments.get("lost_levels", False), entry.arguments["rom_mode"]))
        self._vector: CompatVector | None = CompatVector(
            rom.raw_data.tobytes(),
            has_wram=rom.has_battery_backed_ram,
            targets=self._targets(entry),
            actions=held,
            threads=thread_count(threads, num_envs),
            owned=not writable,
            start=self._start,
            info=self._info,
            reward=self._reward,
            done=self._done,
        )
        self._draw_on(self._vector.frames())
        self._frames[:] = 0

    @staticmethod
    def _action_bytes(actions: Sequence[Sequence[str]] | None) -> bytes:
        if actions is None:
            return bytes(range(256))
        joypad = Joypad()
        joypad._map_actions([list(buttons) for buttons in actions])
        return bytes(joypad._action_map.values())

    @staticmethod
    def _targets(entry: Entry) -> list[tuple[int, int, int]]:
        """World, stage and area from 0, as the engine takes them; a negative world for the whole game."""
        lost = entry.arguments.get("lost_levels", False)
        named: list[Any] = [entry.arguments.get("target")]
        if entry.random:
            named = [(world + 1, stage + 1) for world in range(WORLDS) for stage in range(STAGES)]
        targets = []
        for target in named:
            world, stage, area = decode_target(target, lost)
            targets.append((-1, 0, 0) if not (world and stage and area) else (world - 1, stage - 1, area - 1))
        return targets

    def _engine(self) -> CompatVector:
        if self._vector is None:
            raise ValueError("env has already been closed.")
        return self._vector

    def close_extras(self, **kwargs: Any) -> None:
        """Join the threads and give the memory back."""
        self._vector = None

    def _draw_starts(self, mask: NDArray[np.bool_], stages: Sequence[str] | None = None) -> None:
        if self._random:
            for i in np.flatnonzero(mask):
                world, stage = draw_stage(self._generators[i], self._stages if stages is None else stages)
                self._start[i] = world * STAGES + stage

    def _draw_on(self, frames: NDArray[np.uint8]) -> None:
        """From now on frames are painted there; the caller sees them there too."""
        self._frames = frames
        self._seen = frames.view()
        # Otherwise what a caller wrote would stay wherever a later frame is the same.
        self._seen.flags.writeable = self._writable

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = self._blank.copy()
        infos.update(zip(FIELDS, self._info.copy(), strict=True))
        infos["flag_get"] = infos["flag_get"].astype(np.bool_)
        infos["status"] = _STATUS_NAMES.take(infos["status"], mode="clip")
        return infos

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin episodes everywhere, or where `options["reset_mask"]` is set; on one of `options["stages"]`."""
        options = options or {}
        mask = np.asarray(options.get("reset_mask", self._all), np.bool_)
        if mask.shape != (self.num_envs,):
            raise ConfigError(f"reset_mask needs one entry for each of the {self.num_envs} environments.")
        if isinstance(seed, int | np.integer):
            seed = [int(seed) + i for i in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else list(seed)
        if len(seeds) != self.num_envs:
            raise ConfigError(f"Give one seed, or one for each of the {self.num_envs} environments.")
        for generator, value in zip(self._generators, seeds, strict=True):
            if value is not None:
                generator.seed(value)
        if self._copy:
            before = self._frames
            self._draw_on(self._engine().frames())
            self._frames[:] = before
        self._draw_starts(mask, _checked(options.get("stages")))
        self._engine().reset(np.ascontiguousarray(mask), self._frames)
        self._begun = True
        return self._seen, self._infos()

    def step(
        self, actions: Any
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """A step of each; those that are over begin anew as `autoreset_mode` says."""
        if not self._begun:
            raise gym.error.ResetNeeded("Cannot call env.step() before calling env.reset()")
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise ConfigError(f"Give one whole action for each of the {self.num_envs} environments.")
        chosen = chosen.astype(np.int64, copy=False)
        try:
            held = self._engine().buttons(chosen)
        except IndexError:
            raise ConfigError(f"An action is a whole number from 0 to {self._last_action}.") from None
        if np.count_nonzero(self._done):
            if self._mode == AutoresetMode.DISABLED:
                raise ValueError("cannot step in a done environment! call `reset`")
            self._draw_starts(self._done)
        if self._copy:
            self._draw_on(self._engine().frames())
        self._engine().step(held, self._frames)
        reward, done, infos = self._reward.copy(), self._done.copy(), self._infos()
        if self._mode == AutoresetMode.SAME_STEP and np.count_nonzero(done):
            final = np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(done):
                final[i] = self._frames[i].copy()
            self._draw_starts(done)
            self._engine().reset(done, self._frames)
            infos = {**self._infos(), "final_obs": final, "_final_obs": done.copy(), "final_info": infos}
            infos["_final_info"] = done.copy()
        return self._seen, reward, done, np.zeros(self.num_envs, np.bool_), infos

    @property
    def ram(self) -> NDArray[np.uint8]:
        """A copy of the RAM of each, [num_envs, 2048]."""
        out = np.empty((self.num_envs, 0x800), np.uint8)
        self._engine().copy_ram(out)
        return out

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The frames, if the render mode is "rgb_array"."""
        return tuple(frame.copy() for frame in self._frames) if self.render_mode == "rgb_array" else None
