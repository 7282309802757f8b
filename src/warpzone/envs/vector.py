"""Many environments at once, on the native engine."""

from __future__ import annotations

import atexit
import contextlib
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from warpzone.engine import FIELDS, Pool
from warpzone.engine.rom import identify
from warpzone.engine.rom import rom as find_rom
from warpzone.envs.actions import action_buttons, action_names
from warpzone.envs.config import HUD_ROWS, MAX_ENVS, ViewConfig, as_size, thread_count
from warpzone.envs.replays import as_snapshot
from warpzone.envs.rewards import TERMS, RewardArrays, RewardConfig, RewardShaper
from warpzone.envs.stages import parse_stage, parse_stages
from warpzone.errors import ConfigError, Error

Info = dict[str, Any]
Empty = Callable[[tuple[int, ...], Any], NDArray[np.uint8]]
_AUTORESET = {AutoresetMode.NEXT_STEP: 0, AutoresetMode.SAME_STEP: 1, AutoresetMode.DISABLED: 2}
_STATUS = np.array(["small", "tall", "fireball"])
ENDS = ("", "death", "flag", "axe", "time_up", "game_over", "warp", "stalled", "step_limit")
"""Why an episode ended, by the number in `info["end"]`."""

_open_vectors: weakref.WeakSet[MarioVectorEnv] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for vector in list(_open_vectors):
        vector.close()


def default_metadata() -> dict[str, Any]:
    return {"render_modes": ["rgb_array"], "render_fps": 60, "autoreset_mode": AutoresetMode.NEXT_STEP}


class _Buffers:
    """Memory that one step's results go to, with the arrays of it that callers get."""

    def __init__(self, num_envs: int, shape: tuple[int, ...], empty: Empty = np.empty) -> None:
        self.observations = empty((num_envs, *shape), np.uint8)
        self.telemetry = np.empty((len(FIELDS), num_envs), np.int32)
        self.terminated = np.empty(num_envs, np.bool_)
        self.truncated = np.empty(num_envs, np.bool_)
        self.rewards = RewardArrays(num_envs)
        self.fields = dict(zip(FIELDS, self.telemetry, strict=True))
        rewards = self.rewards
        # A view that a caller makes of a row refers to the whole array.
        self._lent = (
            *(self.observations, self.telemetry, self.terminated, self.truncated, *self.fields.values()),
            *(rewards.total, rewards.dx, rewards.rows, *rewards.terms.values()),
        )
        self._at_rest = sum(map(sys.getrefcount, self._lent))

    def held_elsewhere(self) -> bool:
        """Whether a caller still holds an array of these."""
        return sum(map(sys.getrefcount, self._lent)) > self._at_rest


class MarioVectorEnv(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """N consoles on M threads.

    `step` runs all of them and returns arrays; `send` and `recv` are its two halves, so that the caller can work in
    between. Arrays that were returned stay as they are for as long as they are held: memory is used again only
    after the caller has let go of it, so nothing is copied. `empty` gives the memory of the observations, for a
    caller that wants them in memory which a GPU can read.
    """

    metadata: dict[str, Any] = default_metadata()

    def __init__(
        self,
        num_envs: int = 1,
        stage: str | None = None,
        stages: Sequence[str] | str | None = None,
        *,
        frame_skip: int = 4,
        frame_stack: int = 4,
        size: int | tuple[int, int] = 84,
        action_type: str = "simple",
        threads: int = 0,
        seed: int | None = None,
        sticky: float = 0.0,
        noop_max: int = 0,
        max_pool: bool = False,
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
        self._pool: Pool | None = None
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or not 1 <= num_envs <= MAX_ENVS:
            raise ConfigError(f"num_envs must be a whole number from 1 to {MAX_ENVS}, not {num_envs!r}.")
        if stage is not None and stages is not None:
            raise ConfigError("Give either stage or stages, not both.")
        if region not in ("ntsc", "pal"):
            raise ConfigError(f"Unknown region {region!r}: choose 'ntsc' or 'pal'.")
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"Unknown render mode {render_mode!r}: the only one is 'rgb_array'.")
        self.view = ViewConfig(
            frame_skip=frame_skip, frame_stack=frame_stack, size=as_size(size), observation=observation,
            palette=palette,
            crop_hud=crop_hud, max_pool=max_pool, sticky=float(sticky), noop_max=noop_max, action_type=action_type,
            ground=ground, stall_limit=stall_limit, step_limit=step_limit,
        )  # fmt: skip
        image = rom if isinstance(rom, bytes) else find_rom(rom, lost_levels=lost_levels)
        self._image, self._region = image, region
        dump = identify(image)
        self.lost_levels = lost_levels or bool(dump and dump.lost_levels)
        names = [stage] if stage is not None else stages if stages is not None else ["1-1"]
        self.stage_names = parse_stages(names, lost_levels=self.lost_levels)
        self.num_envs = num_envs
        self.threads = thread_count(threads, num_envs)
        self.render_mode = render_mode
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self._same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self.metadata = {**default_metadata(), "autoreset_mode": self.autoreset_mode}
        self.action_meanings = action_names(action_type)
        self.single_observation_space = gym.spaces.Box(0, 255, self.view.shape, np.uint8)
        self.single_action_space = gym.spaces.Discrete(len(self.action_meanings))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.rewards = RewardShaper(reward or RewardConfig(), num_envs, by_jumps=ground == "stood")

        began = time.perf_counter()
        self._pool = Pool(
            image, environments=num_envs, threads=self.threads, frame_skip=frame_skip, frame_stack=frame_stack,
            height=self.view.size[0], width=self.view.size[1], top=HUD_ROWS if crop_hud else 0,
            channels=self.view.channels, measured_palette=palette == "measured", sticky=float(sticky),
            noop_max=noop_max, max_pool=max_pool,
            ground_stood=ground == "stood",
            stall_limit=stall_limit, step_limit=step_limit, autoreset=_AUTORESET[self.autoreset_mode],
            pal=region == "pal", lost_levels=self.lost_levels, pin=pin_threads,
            stages=[parse_stage(name, lost_levels=self.lost_levels) for name in self.stage_names],
            actions=action_buttons(action_type),
        )  # fmt: skip
        self.construction_s = time.perf_counter() - began
        if verbose:
            each = self.construction_s / num_envs
            for i in range(num_envs):
                print(f"[env] constructing env {i + 1}/{num_envs} ({each * 1e3:.2f} ms)")
        self._shape = self.view.shape
        self._empty = empty
        self._spare: list[_Buffers] = []
        self._now = _Buffers(num_envs, self._shape, empty)
        self._final = _Buffers(num_envs, self._shape)
        self._fresh = np.zeros(num_envs, np.bool_)
        self._seed = 0 if seed is None else int(seed)
        self._seeded = False
        self._later: list[tuple[str, tuple[Any, ...]]] = []
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
        buffers = self._next_buffers()
        if mask is not None:
            buffers.telemetry[:] = self._now.telemetry
        pool.reset(mask, seeds, snapshot, *self._targets(buffers))
        self._turn_to(buffers)
        # Those whose episode is over and that were left out still begin anew with the next step.
        self._fresh = np.zeros(self.num_envs, np.bool_) if mask is None else self._fresh & ~mask
        info = self._info(buffers.fields)
        nothing = np.zeros(self.num_envs, np.float32)
        info["reward_terms"] = dict.fromkeys(TERMS, nothing)
        info["dx"] = np.zeros(self.num_envs, np.int32)
        return buffers.observations, info

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """One decision in every environment."""
        if self._later:
            self._do_later()
        buffers = self._next_buffers()
        self._engine().step(self._actions(actions), *self._targets(buffers))
        return self._result(buffers)

    def send(self, actions: NDArray[np.int64]) -> None:
        """Start a step and return at once."""
        if self._later:
            self._do_later()
        buffers = self._next_buffers()
        self._engine().send(self._actions(actions), *self._targets(buffers))
        self._sent = buffers

    def recv(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Wait for the step that `send` started."""
        self._engine().receive()
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

    # ---- beyond Gymnasium ----

    @property
    def ram(self) -> NDArray[np.uint8]:
        """A copy of every console's RAM, uint8 [N, 2048]."""
        out = np.empty((self.num_envs, 2048), np.uint8)
        self._engine().copy_ram(out)
        return out

    def screen(self, index: int) -> NDArray[np.uint8]:
        """What environment `index` last drew, uint8 [240, 256, 3]."""
        return self._engine().screen(int(index))

    def snapshot(self, index: int, *, whole_stack: bool = True) -> bytes:
        """The environment's console, episode and stacked frames; with only the newest frame it is much smaller."""
        return self._engine().snapshot(int(index), self.view.frame_stack if whole_stack else 1)

    def restore(self, index: int, blob: bytes) -> None:
        """Go back to a snapshot of this or another environment with the same ROM and view."""
        self.restore_many({index: blob})

    def restore_many(self, blobs: Mapping[int, bytes]) -> None:
        """The same for several environments: index to snapshot."""
        for index, blob in blobs.items():
            self._engine().restore(int(index), bytes(blob))
        self._reread()

    def observe(self, index: int) -> NDArray[np.uint8]:
        """The present observation of one environment."""
        out = np.empty(self._shape, np.uint8)
        self._engine().observe(int(index), out)
        return out

    def set_stage(self, stage: str) -> None:
        """Let all later episodes be of this stage. One that the vector did not have becomes the last of its stages."""
        world, number = parse_stage(stage, lost_levels=self.lost_levels)
        if stage not in self.stage_names:
            self._engine().add_stage(world, number)
            self.stage_names.append(stage)
        self.set_stage_weights([float(name == stage) for name in self.stage_names])

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each of `stage_names` is drawn for the episodes that begin from now on.

        While a step is under way it counts from the next one on.
        """
        self._later.append(("set_stage_weights", ([float(w) for w in weights],)))
        self._do_later()

    def queue_start(self, index: int, blob: bytes) -> None:
        """Let the next episode of environment `index` begin from a snapshot; see `set_stage_weights` for when."""
        self._later.append(("queue_start", (int(index), bytes(blob))))
        self._do_later()

    def state_dict(self) -> dict[str, Any]:
        """Every console with its episode, and what the next reward is reckoned from."""
        return {
            "consoles": [self.snapshot(i) for i in range(self.num_envs)],
            "rewards": self.rewards.state_dict(),
            "fresh": self._fresh.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to `state_dict` of a vector with the same ROM, view and number of environments."""
        pool = self._engine()
        if len(state["consoles"]) != self.num_envs:
            raise ConfigError(
                f"The saved state is of {len(state['consoles'])} environments, not {self.num_envs}."
            )
        for i, blob in enumerate(state["consoles"]):
            pool.restore(i, bytes(blob))
        self._reread()
        self.rewards.load_state_dict(state["rewards"])
        self._fresh = np.array(state["fresh"], np.bool_)
        self._seeded = True

    # ---- inside ----

    def _do_later(self) -> None:
        """Pass on to the engine what had to wait for the end of a step."""
        pool = self._engine()
        if pool.pending:
            return
        waiting, self._later = self._later, []
        for method, arguments in waiting:
            getattr(pool, method)(*arguments)

    def _reread(self) -> None:
        """Consoles changed under the vector: what they report must be read again before the next reward."""
        buffers = self._next_buffers()
        nobody = np.zeros(self.num_envs, np.bool_)
        self._engine().reset(nobody, None, None, *self._targets(buffers))
        self._turn_to(buffers)

    def _engine(self) -> Pool:
        if self._pool is None:
            raise ConfigError("The environment is closed: make a new one.")
        return self._pool

    def _actions(self, actions: Any) -> NDArray[np.int64]:
        array = np.asarray(actions)
        if array.shape != (self.num_envs,):
            raise ConfigError(
                f"Give one action for each of the {self.num_envs} environments, not an array of shape {array.shape}."
            )
        if array.dtype.kind not in "iu":
            raise ConfigError(f"Actions are whole numbers, not {array.dtype}.")
        return np.ascontiguousarray(array, dtype=np.int64)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> NDArray[np.uint64] | None:
        if seed is None:
            if self._seeded:
                return None
            seed = self._seed
        self._seeded = True
        if isinstance(seed, int | np.integer):
            first = int(seed) & 0xFFFFFFFFFFFFFFFF
            spread = np.arange(self.num_envs, dtype=np.uint64) + np.uint64(1)
            # Neighbouring seeds must not give neighbouring environments the same stream.
            with np.errstate(over="ignore"):
                return np.uint64(first) * np.uint64(0xD1342543DE82EF95) + spread * np.uint64(
                    0x2545F4914F6CDD1D
                )
        if len(seed) != self.num_envs:
            raise ConfigError(f"Give one seed, or one for each of the {self.num_envs} environments.")
        return np.array([(s or 0) & 0xFFFFFFFFFFFFFFFF for s in seed], dtype=np.uint64)

    def _next_buffers(self) -> _Buffers:
        """Memory for the next results: some that nobody holds any more, or new."""
        for i, buffers in enumerate(self._spare):
            if not buffers.held_elsewhere():
                return self._spare.pop(i)
        del self._spare[:-2]
        return _Buffers(self.num_envs, self._shape, self._empty)

    def _turn_to(self, buffers: _Buffers) -> _Buffers:
        """Make these the present results. Returns those before."""
        before, self._now = self._now, buffers
        self._spare.append(before)
        return before

    def _targets(self, b: _Buffers) -> tuple[Any, ...]:
        return (
            b.observations,
            b.telemetry,
            b.terminated,
            b.truncated,
            self._final.observations,
            self._final.telemetry,
        )

    def _info(self, fields: dict[str, NDArray[np.int32]]) -> Info:
        info: Info = dict(fields)
        info["flag_get"] = info["flag_get"] != 0
        info["status"] = _STATUS.take(info["status"], mode="clip")
        return info

    def _result(
        self, buffers: _Buffers
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Info]:
        before = self._turn_to(buffers)
        done = buffers.terminated | buffers.truncated
        ended = buffers.telemetry
        final_step = self._same_step and bool(done.any())
        if final_step:
            ended = np.where(done, self._final.telemetry, buffers.telemetry)
        # Those in _fresh only began an episode: NEXT_STEP spends a step on that.
        self.rewards.of_telemetry(before.telemetry, ended, self._fresh, buffers.rewards)
        info = self._info(buffers.fields)
        info["reward_terms"] = dict(buffers.rewards.terms)
        info["dx"] = buffers.rewards.dx
        if final_step:
            # Handed out and replaced, not copied: only the rows of ended episodes were ever touched.
            info["final_obs"] = self._final.observations
            info["final_info"] = self._info(dict(zip(FIELDS, ended, strict=True)))
            info["_final_obs"] = info["_final_info"] = done
            self._final = _Buffers(self.num_envs, self._shape)
        elif not self._same_step:
            self._fresh = done
        return buffers.observations, buffers.rewards.total, buffers.terminated, buffers.truncated, info


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if str(mode).lower().replace("_", "") in (known.name.lower().replace("_", ""), known.value.lower()):
            return known
    raise ConfigError(f"Unknown autoreset mode {mode!r}: choose next_step, same_step or disabled.")
