"""Rewards and info of gym-super-mario-bros 9, by its own names: progress counts once, and events add to it."""

from __future__ import annotations

from typing import Any

from warpzone.compat.ids import ROM_MODES
from warpzone.compat.mario import ENEMY_TYPES, Mario

TERMS = ("progress", "time", "score", "coins", "powerup", "completion", "death")
"""Of the reward, in the order in which they are computed."""

FASTEST = 5
"""Pixels a step; more is a jump of the camera, not of the player."""


def world_label(world: int, lost_levels: bool) -> str:
    """The game's own name of a world: behind world 9 of the Lost Levels come A to D."""
    return chr(ord("A") + world - 10) if lost_levels and world >= 10 else str(world)


class ShapedMario(Mario):
    """The game with the rules of version 9."""

    _lost_levels: bool
    _rom_mode: str
    _x_position_max: int
    _score_last: int
    _coins_last: int
    _status_last: int
    _completion_rewarded: bool

    _game = property(lambda self: "lost_levels" if self._lost_levels else "smb1")
    _status_value = property(lambda self: self._byte(0x0756))
    _powerup_level = property(lambda self: min(self._status_value, 2))
    _enemy_types = property(lambda self: tuple(map(self._byte, ENEMY_TYPES)))

    @property
    def _task_id(self) -> str:
        game = "SuperMarioBros2" if self._lost_levels else "SuperMarioBros"
        if self._target_world is not None:
            game += f"-{world_label(self._target_world, self._lost_levels)}-{self._target_stage}"
        return f"{game}-v{ROM_MODES.index(self._rom_mode)}"

    # ---- reward: each term is read once a step ----
    @property
    def _progress_reward(self) -> int:
        beyond: int = self._x_position - self._x_position_max
        self._x_position_max = max(self._x_position_max, self._x_position)
        return beyond if 0 < beyond <= FASTEST else 0

    @property
    def _score_reward(self) -> float:
        gained: int = self._score - self._score_last
        self._score_last = self._score
        return max(gained, 0) / 100

    @property
    def _coin_reward(self) -> int:
        gained: int = self._coins - self._coins_last
        self._coins_last = self._coins
        return 5 * max(gained + 100 if gained < -50 else gained, 0)  # the counter has two digits

    @property
    def _powerup_reward(self) -> int:
        gained: int = self._powerup_level - self._status_last
        self._status_last = self._powerup_level
        return 5 * gained

    @property
    def _completion_reward(self) -> int:
        first = self._flag_get and not self._completion_rewarded
        self._completion_rewarded = self._completion_rewarded or first
        return 50 if first else 0

    def _keep_reward(self, terms: dict[str, float]) -> None:
        low, high = self.reward_range
        self._last_reward_components = terms
        self._last_reward_unclipped = float(sum(terms.values()))
        self._last_reward_clipped = float(min(max(self._last_reward_unclipped, low), high))

    def _get_reward(self) -> float:
        values = (
            self._progress_reward,
            self._time_penalty,
            self._score_reward,
            self._coin_reward,
            self._powerup_reward,
            self._completion_reward,
            self._death_penalty,
        )
        self._keep_reward(dict(zip(TERMS, map(float, values), strict=True)))
        return self._last_reward_unclipped

    def _get_terminated(self) -> bool:
        return Mario._get_done(self)

    # ---- what steps are compared with ----
    def _will_reset(self) -> None:
        super()._will_reset()
        self._x_position_max = self._score_last = self._coins_last = self._status_last = 0
        self._completion_rewarded = False
        self._keep_reward(dict.fromkeys(TERMS, 0.0))

    def _did_reset(self) -> None:
        super()._did_reset()
        self._x_position_max = self._x_position
        self._score_last, self._coins_last = self._score, self._coins
        self._status_last = self._powerup_level

    def _get_info(self) -> dict[str, Any]:
        return {
            **super()._get_info(),
            "area": self._area,
            "enemy_types": self._enemy_types,
            "is_dead": self._is_dead,
            "is_dying": self._is_dying,
            "is_game_over": self._is_game_over,
            "is_stage_over": self._is_stage_over,
            "is_world_over": self._is_world_over,
            "left_x_pos": self._left_x_position,
            "level": self._level,
            "player_state": self._player_state,
            "powerup_level": self._powerup_level,
            "status_value": self._status_value,
            "x_pos_max": self._x_position_max,
            "y_pixel": self._y_pixel,
            "y_viewport": self._y_viewport,
            # the same for every game of version 9
            "clear": self._flag_get,
            "death": self._is_dying or self._is_dead,
            "game": self._game,
            "game_family": self._game,
            "lives": self._life,
            "progress": self._x_position,
            "progress_max": self._x_position_max,
            "rom_mode": self._rom_mode,
            "single_stage": self.is_single_stage_env,
            "task_id": self._task_id,
            "target_world": self._target_world,
            "target_stage": self._target_stage,
            "timeout": False,
            "world_label": world_label(self._world, self._lost_levels),
            "reward_components": dict(self._last_reward_components),
            "reward_total_unclipped": self._last_reward_unclipped,
            "reward_total_clipped": self._last_reward_clipped,
        }
