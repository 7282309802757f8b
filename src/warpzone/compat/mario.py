"""The rules of gym-super-mario-bros 7, by its own names, so that subclasses may override any of them.

A class that overrides none is stepped by the engine, which knows the same rules; `Mario` itself is their reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.compat.emulation import Emulation
from warpzone.compat.rom import decode_target, rom_path

REWARD_RANGE = (-15, 15)

STATUS = {0: "small", 1: "tall"}
"""By the game's number; all above are "fireball"."""

BUSY_STATES = (0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x07)
"""Player states in which the player can't act."""

ENEMY_TYPES = range(0x0016, 0x001B)
"""RAM addresses of the kinds of enemies on the screen."""

STAGE_OVER_ENEMIES = (0x2D, 0x31)
"""Bowser and the flagpole: by these, the end of a stage is told from a vine."""


class Mario(Emulation):
    """Super Mario Bros or the Lost Levels: the whole game, or one stage of it."""

    reward_range: tuple[float, float] = REWARD_RANGE
    _target_world: int | None
    _target_stage: int | None
    _target_area: int | None

    def _start_game(self, rom_mode: str, lost_levels: bool, target: Any) -> None:
        self._power_on(rom_path(lost_levels, rom_mode))
        self._target_world, self._target_stage, self._target_area = decode_target(target, lost_levels)
        self._time_last = 0
        self._x_position_last = 0
        self._by_engine = False
        self._begin(None)
        self._skip_start_screen()
        self._backup()

    def _byte(self, address: int) -> int:
        return int(self.ram[address])

    @property
    def is_single_stage_env(self) -> bool:
        return self._target_world is not None and self._target_area is not None

    # Kept by the engine, which needs them for the same sums.
    @property
    def _time_last(self) -> int:
        return self._emulator.time_last

    @_time_last.setter
    def _time_last(self, value: int) -> None:
        self._emulator.time_last = value

    @property
    def _x_position_last(self) -> int:
        return self._emulator.x_last

    @_x_position_last.setter
    def _x_position_last(self, value: int) -> None:
        self._emulator.x_last = value

    # ---- what the RAM means ----
    def _read_mem_range(self, address: int, length: int) -> int:
        """A number kept as one digit a byte."""
        return int("".join(map(str, self.ram[address : address + length])))

    _level = property(lambda self: self._byte(0x075F) * 4 + self._byte(0x075C))
    _world = property(lambda self: self._byte(0x075F) + 1)
    _stage = property(lambda self: self._byte(0x075C) + 1)
    _area = property(lambda self: self._byte(0x0760) + 1)
    _score = property(lambda self: self._read_mem_range(0x07DE, 6))
    _time = property(lambda self: self._read_mem_range(0x07F8, 3))
    _coins = property(lambda self: self._read_mem_range(0x07ED, 2))
    _life = property(lambda self: self._byte(0x075A))
    _x_position = property(lambda self: self._byte(0x6D) * 0x100 + self._byte(0x86))
    _left_x_position = property(lambda self: (self._byte(0x86) - self._byte(0x071C)) % 256)
    _y_pixel = property(lambda self: self._byte(0x03B8))
    _y_viewport = property(lambda self: self._byte(0x00B5))
    _y_position = property(lambda self: (510 if self._y_viewport < 1 else 255) - self._y_pixel)
    _player_status = property(lambda self: STATUS.get(self._byte(0x0756), "fireball"))
    _player_state = property(lambda self: self._byte(0x000E))
    _is_dying = property(lambda self: self._player_state == 0x0B or self._y_viewport > 1)
    _is_dead = property(lambda self: self._player_state == 0x06)
    _is_game_over = property(lambda self: self._life == 0xFF)
    _is_busy = property(lambda self: self._player_state in BUSY_STATES)
    _is_world_over = property(lambda self: self._byte(0x0770) == 2)

    @property
    def _is_stage_over(self) -> bool:
        near_the_end = any(self._byte(address) in STAGE_OVER_ENEMIES for address in ENEMY_TYPES)
        return near_the_end and self._byte(0x001D) == 3

    _flag_get = property(lambda self: self._is_world_over or self._is_stage_over)

    # ---- writing to it, to skip scenes ----
    def _write_stage(self) -> None:
        target = (self._target_world, self._target_stage, self._target_area)
        for address, part in zip((0x075F, 0x075C, 0x0760), target, strict=True):
            if part is not None:
                self.ram[address] = part - 1

    def _runout_prelevel_timer(self) -> None:
        self.ram[0x07A0] = 0

    def _skip_change_area(self) -> None:
        if 1 < self._byte(0x06DE) < 255:
            self.ram[0x06DE] = 1

    def _skip_occupied_states(self) -> None:
        while self._is_busy or self._is_world_over:
            self._runout_prelevel_timer()
            self._frame_advance(0)

    def _skip_start_screen(self) -> None:
        if self._by_engine:
            single = self.is_single_stage_env
            start = (self._target_world, self._target_stage, self._target_area) if single else (0, 1, 1)
            world, stage, area = (part - 1 for part in start if part is not None)
            self._emulator.skip_start_screen((world, stage, area))
            return
        self._frame_advance(8)
        self._frame_advance(0)
        while self._time == 0:
            self._frame_advance(8)
            if self.is_single_stage_env:
                self._write_stage()
            self._frame_advance(0)
            self._runout_prelevel_timer()
        self._time_last = self._time
        while self._time >= self._time_last:
            self._time_last = self._time
            self._frame_advance(8)
            self._frame_advance(0)

    def _skip_end_of_world(self) -> None:
        if self._is_world_over:
            time = self._time
            while self._time == time:
                self._frame_advance(0)

    def _kill_mario(self) -> None:
        self.ram[0x000E] = 0x06
        self._frame_advance(0)

    # ---- rewards ----
    @property
    def _x_reward(self) -> int:
        """Pixels gone to the right. More than 5 in a frame is no walk but a new place."""
        moved: int = self._x_position - self._x_position_last
        self._x_position_last = self._x_position
        return moved if -5 <= moved <= 5 else 0

    @property
    def _time_penalty(self) -> int:
        ticked: int = self._time - self._time_last
        self._time_last = self._time
        return min(ticked, 0)

    @property
    def _death_penalty(self) -> int:
        return -25 if self._is_dying or self._is_dead else 0

    # ---- hooks ----
    def _will_reset(self) -> None:
        self._time_last = 0
        self._x_position_last = 0

    def _did_reset(self) -> None:
        self._time_last = self._time
        self._x_position_last = self._x_position

    def _did_step(self, done: bool) -> None:
        if done:
            return
        if self._is_dying:
            self._kill_mario()
        if not self.is_single_stage_env:
            self._skip_end_of_world()
        self._skip_change_area()
        self._skip_occupied_states()

    def _get_reward(self) -> float:
        return self._x_reward + self._time_penalty + self._death_penalty

    def _get_done(self) -> bool:
        if self.is_single_stage_env:
            return bool(self._is_dying or self._is_dead or self._flag_get)
        return bool(self._is_game_over)

    def _get_info(self) -> dict[str, Any]:
        return {
            "coins": self._coins,
            "flag_get": self._flag_get,
            "life": self._life,
            "score": self._score,
            "stage": self._stage,
            "status": self._player_status,
            "time": self._time,
            "world": self._world,
            "x_pos": self._x_position,
            "y_pos": self._y_position,
        }

    # ---- stepping ----
    def _begin(self, seed: int | None) -> NDArray[np.uint8]:
        # Looked at here, so that hooks replaced on the class or the object count from the next reset on.
        cls = type(self)
        self._by_engine = (
            _RULES.keys().isdisjoint(self.__dict__)
            and all(getattr(cls, name) is rule for name, rule in _RULES.items())
            and tuple(self.reward_range) == REWARD_RANGE
        )
        return super()._begin(seed)

    def _advance(self, action: Any) -> tuple[float, dict[str, Any]]:
        if not self._by_engine:
            return super()._advance(action)
        if self.done:
            raise ValueError("cannot step in a done environment! call `reset`")
        self.controllers[0][:] = action
        reward, self.done, info = self._emulator.play(self.is_single_stage_env)
        return reward, info


_KEPT = ("_start_game", "_begin", "_advance", "_share_buffers", "_show", "_power_on", "_emulator", "_byte")
_RULES = {
    name: getattr(Mario, name)
    for name in dir(Mario)
    if name.startswith("_")
    and not name.startswith("__")
    and name not in _KEPT
    and name not in ("_env", "_VIEWS")
} | {"is_single_stage_env": Mario.__dict__["is_single_stage_env"]}
"""What a subclass may change; the engine's step does as all of these together."""
