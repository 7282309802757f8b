"""Many environments at once, on the native engine."""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from warpzone.engine import Pool
from warpzone.engine.rom import identify
from warpzone.engine.rom import rom as find_rom
from warpzone.envs.config import ViewConfig, as_size, thread_count
from warpzone.envs.custom_levels import LevelStages
from warpzone.envs.interface import Info, Result, TelemetryVector, add_finals, step_info
from warpzone.envs.pool_envs import Empty, PoolEnvs, StepMemory
from warpzone.envs.replays import as_snapshot
from warpzone.envs.rewards import RewardArrays, RewardConfig
from warpzone.envs.stages import parse_stage, parse_stages
from warpzone.errors import ConfigError, Error
from warpzone.levels.format import LevelData

_AUTORESET = {AutoresetMode.NEXT_STEP: 0, AutoresetMode.SAME_STEP: 1, AutoresetMode.DISABLED: 2}

_open_vectors: weakref.WeakSet[MarioVectorEnv] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for vector in list(_open_vectors):
        vector.close()


class MarioVectorEnv(PoolEnvs, TelemetryVector):
    """N environments on M threads.

    `step` runs all of them and returns arrays; `send` and `recv` are its two halves, so that the caller can work in
    between. Returned arrays do not change while they are held: memory is reused only after the caller has dropped it,
    so nothing is copied. `levels` are played as stages are, beside those that are named. `empty` allocates the
    observations, for example in memory that a GPU can read.
    """

    def __init__(
        self,
        num_envs: int = 1,
        stage: str | None = None,
        stages: Sequence[str] | str | None = None,
        *,
        levels: Sequence[LevelData] | None = None,
        frame_skip: int = 4,
        frame_skip_noise: int = 0,
        frame_stack: int = 4,
        size: int | tuple[int, int] = 84,
        action_type: str = "simple",
        threads: int = 0,
        seed: int | None = None,
        sticky: float = 0.0,
        noop_max: int = 0,
        random_start: float = 0.0,
        max_pool: bool = False,
        show_buttons: bool = False,
        crop_hud: bool = False,
        observation: str = "gray",
        palette: str = "nes-py",
        ground: str = "reached",
        stall_limit: int = 0,
        step_limit: int = 0,
        reward: RewardConfig | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        rom: bytes | str | None = None,
        lost_levels: bool = False,
        region: str = "ntsc",
        pin_threads: bool = True,
        render_mode: str | None = None,
        verbose: bool = False,
        empty: Empty = np.empty,
    ) -> None:
        if stage is not None and stages is not None:
            raise ConfigError("Give either stage or stages, not both.")
        if region not in ("ntsc", "pal"):
            raise ConfigError(f"Unknown region {region!r}: choose 'ntsc' or 'pal'.")
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"Unknown render mode {render_mode!r}: the only one is 'rgb_array'.")
        view = ViewConfig(
            frame_skip=frame_skip, frame_skip_noise=frame_skip_noise, frame_stack=frame_stack,
            size=as_size(size), observation=observation,
            palette=palette, crop_hud=crop_hud, max_pool=max_pool, show_buttons=show_buttons,
            sticky=float(sticky), noop_max=noop_max,
            random_start=random_start, action_type=action_type, ground=ground, stall_limit=stall_limit,
            step_limit=step_limit,
        )  # fmt: skip
        self._describe(num_envs, view, reward, autoreset_of(autoreset_mode), seed)
        image = rom if isinstance(rom, bytes) else find_rom(rom, lost_levels=lost_levels)
        self._image, self._region = image, region
        dump = identify(image)
        self.lost_levels = lost = lost_levels or bool(dump and dump.lost_levels)
        given = stages if stage is None else [stage]
        names = given if given is not None else ["1-1"] if levels is None else []
        self.stage_names = parse_stages(names, lost_levels=lost) if names or levels is None else []
        if levels is not None:
            self._levels = LevelStages(image, self.stage_names, levels, lost)
            self._image, self.stage_names = self._levels.image, self._levels.names
        self.threads = thread_count(threads, num_envs)
        self.render_mode = render_mode
        self._same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        began = time.perf_counter()
        settings = self.view.pool_settings
        settings.update({
            "environments": num_envs, "threads": self.threads, "autoreset": _AUTORESET[self.autoreset_mode],
            "pal": region == "pal", "lost_levels": self.lost_levels, "pin": pin_threads,
        })  # fmt: skip
        if self._levels is None:
            settings["stages"] = [
                parse_stage(name, lost_levels=self.lost_levels) for name in self.stage_names
            ]
        else:
            settings.update(self._levels.settings())
        pool = Pool(self._image, **settings)
        self.construction_s = time.perf_counter() - began
        if verbose:
            each = self.construction_s / num_envs
            for i in range(num_envs):
                print(f"[env] constructing env {i + 1}/{num_envs} ({each * 1e3:.2f} ms)")
        self._open(pool, empty)
        _open_vectors.add(self)

    # ---- Gymnasium ----

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin episodes. `options`: "stage" (for these and all later episodes), "snapshot", "reset_mask".

        A snapshot is what `snapshot` gave, or a file that `warpzone play` saved.
        """
        pool = self._engine()
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        stage = options.pop("stage", None)
        snapshot = options.pop("snapshot", None)
        if options:
            raise ConfigError(
                f"Unknown reset option {next(iter(options))!r}: use stage, snapshot or reset_mask."
            )
        if snapshot is not None:
            snapshot = as_snapshot(snapshot, self.view, self._image, self._region)
        if mask is not None:
            mask = np.ascontiguousarray(mask, dtype=np.bool_)
            if mask.shape != (self.num_envs,):
                raise ConfigError(f"reset_mask needs one entry for each of the {self.num_envs} environments.")
        if stage is not None:
            self.set_stage(stage)
        seeds = self._seeds(seed)
        memory = self._next_memory()
        if mask is not None:
            memory.telemetry[:] = self._now.telemetry
        self._run(pool.reset, mask, seeds, snapshot, *self._targets(memory))
        self._turn_to(memory)
        # Those whose episode is over and that were left out still begin anew with the next step.
        self._fresh = np.zeros(self.num_envs, np.bool_) if mask is None else self._fresh & ~mask
        return memory.observations, step_info(memory.fields, RewardArrays(self.num_envs))

    def step(self, actions: NDArray[np.int64]) -> Result:
        """One decision in every environment."""
        if self._later:
            self._do_later()
        memory = self._next_memory()
        self._run(self._engine().step, self._actions(actions), *self._targets(memory))
        return self._result(memory)

    def send(self, actions: NDArray[np.int64]) -> None:
        """Start a step and return at once."""
        if self._later:
            self._do_later()
        memory = self._next_memory()
        self._engine().send(self._actions(actions), *self._targets(memory))
        self._sent = memory

    def recv(self) -> Result:
        """Wait for the step that `send` started."""
        self._run(self._engine().receive)
        return self._result(self._sent)

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The screens, if render_mode is rgb_array."""
        if self.render_mode is None:
            return None
        return tuple(self.screen(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Join the threads and give the memory back."""
        if self._pool is not None and self._pool.pending:
            # What became of the step no longer matters to anyone.
            with contextlib.suppress(Error):
                self._pool.receive()
        self._pool = None

    # ---- inside ----

    def _result(self, memory: StepMemory) -> Result:
        before = self._turn_to(memory)
        done = memory.terminated | memory.truncated
        ended = memory.telemetry
        final_step = self._same_step and bool(done.any())
        if final_step:
            ended = np.where(done, self._final.telemetry, memory.telemetry)
        # Those in _fresh only began an episode: NEXT_STEP spends a step on that.
        self.rewards.of_telemetry(before.telemetry, ended, self._fresh, memory.rewards)
        info = step_info(memory.fields, memory.rewards)
        if final_step:
            # Handed out and replaced, not copied: only the rows of ended episodes were ever touched.
            add_finals(info, done, self._final.observations, ended)
            self._final = StepMemory(self.num_envs, self.view.shape)
        elif not self._same_step:
            self._fresh = done
        return memory.observations, memory.rewards.total, memory.terminated, memory.truncated, info


def autoreset_of(mode: AutoresetMode | str) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if str(mode).lower().replace("_", "") in (known.name.lower().replace("_", ""), known.value.lower()):
            return known
    raise ConfigError(f"Unknown autoreset mode {mode!r}: choose next_step, same_step or disabled.")
