"""Environments of the native engine below Gymnasium's interface: memory of results, stages, snapshots and starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.engine import FIELDS, Pool
from warpzone.envs.config import ViewConfig
from warpzone.envs.custom_levels import LevelStages
from warpzone.envs.rewards import RewardArrays, RewardShaper
from warpzone.envs.stages import parse_stage
from warpzone.errors import CheckpointError, ConfigError
from warpzone.levels.format import LevelData

Empty = Callable[[tuple[int, ...], Any], NDArray[np.uint8]]


class StepMemory:
    """Memory of one step's results, with the arrays of it that callers get."""

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


class PoolEnvs:
    """N environments of the engine. `MarioVectorEnv` opens the pool and adds Gymnasium's interface."""

    num_envs: int
    view: ViewConfig
    lost_levels: bool
    stage_names: list[str]
    rewards: RewardShaper
    has_snapshots = True
    _seeded: bool
    _pool: Pool | None = None
    _levels: LevelStages | None = None

    def _open(self, pool: Pool, empty: Empty) -> None:
        self._pool = pool
        self._empty = empty
        self._spare: list[StepMemory] = []
        self._now = StepMemory(self.num_envs, self.view.shape, empty)
        self._final = StepMemory(self.num_envs, self.view.shape)
        self._fresh = np.zeros(self.num_envs, np.bool_)
        """Environments whose next step only begins an episode."""
        self._later: list[tuple[str, tuple[Any, ...]]] = []

    @property
    def ram(self) -> NDArray[np.uint8]:
        """A copy of every environment's RAM, uint8 [N, 2048]."""
        out = np.empty((self.num_envs, 2048), np.uint8)
        self._engine().copy_ram(out)
        return out

    def screen(self, index: int) -> NDArray[np.uint8]:
        """The last frame of environment `index`, uint8 [240, 256, 3]."""
        return self._engine().screen(int(index))

    def observe(self, index: int) -> NDArray[np.uint8]:
        """The current observation of one environment."""
        out = np.empty(self.view.shape, np.uint8)
        self._engine().observe(int(index), out)
        return out

    # ---- snapshots and starts ----

    def snapshot(self, index: int, *, whole_stack: bool = True) -> bytes:
        """The emulator, episode and stacked frames of one environment; much smaller with the newest frame only."""
        return self._engine().snapshot(int(index), self.view.frame_stack if whole_stack else 1)

    def restore(self, index: int, blob: bytes) -> None:
        """Return to a snapshot of this or another environment with the same ROM, region, stage and view."""
        self.restore_many({index: blob})

    def restore_many(self, blobs: Mapping[int, bytes]) -> None:
        """The same for several environments: index to snapshot."""
        try:
            for index, blob in blobs.items():
                self._engine().restore(int(index), bytes(blob))
        finally:
            self._reread()
        for index in blobs:
            # Without SAME_STEP, the step after an episode's last one only begins the next.
            self._fresh[index] = self._now.fields["end"][index] != 0

    def queue_start(self, index: int, blob: bytes) -> None:
        """Begin the next episode of environment `index` from a snapshot; see `set_stage_weights` for when."""
        self._later.append(("queue_start", (int(index), bytes(blob))))
        self._do_later()

    def state_dict(self) -> dict[str, Any]:
        """Every environment with its episode, and what the next reward is computed from."""
        return {
            "consoles": [self.snapshot(i) for i in range(self.num_envs)],
            "rewards": self.rewards.state_dict(),
            "fresh": self._fresh.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to `state_dict` of a vector with the same ROM, view, stages and number of environments."""
        if len(state["consoles"]) != self.num_envs:
            raise ConfigError(
                f"The saved state is of {len(state['consoles'])} environments, not {self.num_envs}."
            )
        now = dict(enumerate(self.state_dict()["consoles"]))
        try:
            self.restore_many(dict(enumerate(state["consoles"])))
        except CheckpointError:
            self.restore_many(now)
            raise
        self.rewards.load_state_dict(state["rewards"])
        self._fresh = np.array(state["fresh"], np.bool_)
        self._seeded = True

    def metrics(self) -> dict[str, Any]:
        """Environments in this process add nothing to a run's metrics."""
        return {}

    # ---- stages ----

    def set_stage(self, stage: str) -> None:
        """Make all later episodes of this stage. A stage that the vector did not have is added to its stages."""
        if stage not in self.stage_names:
            world, number = parse_stage(stage, lost_levels=self.lost_levels)
            memory = self._levels.play_of(stage).memory if self._levels else b""
            self._engine().add_stage(world, number, memory)
            self.stage_names.append(stage)
        self.set_stage_weights([float(name == stage) for name in self.stage_names])

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each of `stage_names` is sampled for the episodes that begin from now on.

        During a step, from the next one on.
        """
        self._later.append(("set_stage_weights", ([float(w) for w in weights],)))
        self._do_later()

    def set_levels(self, levels: Mapping[int, LevelData]) -> None:
        """Replace levels by their place in `stage_names`, which keeps its names: episodes that begin later play them.

        During a step, from the next one on.
        """
        if self._levels is None:
            raise ConfigError("The environments have no levels: give levels when they are made.")
        for which, level in levels.items():
            play = self._levels.play_of(level)
            self._later.append(("set_stage", (int(which), play.world, play.stage, play.memory)))
        self._do_later()

    # ---- inside ----

    def _engine(self) -> Pool:
        if self._pool is None:
            raise ConfigError("The environment is closed: make a new one.")
        return self._pool

    def _run(self, method: Callable[..., None], *arguments: Any) -> None:
        """Call the engine. A bad snapshot that an episode should begin from is the same error as in `restore`."""
        try:
            method(*arguments)
        except ConfigError as error:
            if str(error).startswith("Environment ") and "snapshot" in str(error):
                raise CheckpointError(str(error)) from None
            raise

    def _do_later(self) -> None:
        """Pass on to the engine what had to wait for the end of a step."""
        pool = self._engine()
        if pool.pending:
            return
        waiting, self._later = self._later, []
        for method, arguments in waiting:
            getattr(pool, method)(*arguments)

    def _reread(self) -> None:
        """Read telemetry again before the next reward: states have changed outside of a step."""
        memory = self._next_memory()
        nobody = np.zeros(self.num_envs, np.bool_)
        self._engine().reset(nobody, None, None, *self._targets(memory))
        self._turn_to(memory)

    def _next_memory(self) -> StepMemory:
        """Memory for the next results: some that nobody holds any more, or new."""
        for i, memory in enumerate(self._spare):
            if not memory.held_elsewhere():
                return self._spare.pop(i)
        del self._spare[:-2]
        return StepMemory(self.num_envs, self.view.shape, self._empty)

    def _turn_to(self, memory: StepMemory) -> StepMemory:
        """Make these the current results. Returns the previous ones."""
        before, self._now = self._now, memory
        self._spare.append(before)
        return before

    def _targets(self, memory: StepMemory) -> tuple[Any, ...]:
        m, final = memory, self._final
        return m.observations, m.telemetry, m.terminated, m.truncated, final.observations, final.telemetry
