"""Rewards, vectorised over telemetry: what a step earned, term by term."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import custom_code
from warpzone.engine import FIELDS, shape_rewards
from warpzone.envs.telemetry import died as died_between
from warpzone.errors import ConfigError, require

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

BUILT_IN = ("distance", "score", "flag", "death", "time", "maze", "coin", "clip")
TERMS = (*BUILT_IN, "custom")

RewardFunction = Callable[[Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]], NDArray[Any]]
"""Telemetry before and after a decision, by field, arrays [N], to rewards [N]. `after["died"]` is there too."""


@dataclass(frozen=True)
class RewardConfig:
    """Terms of the reward, each visible in `info["reward_terms"]`."""

    reward_distance_weight: float = 1.0
    """Reward per pixel of new ground in the episode."""
    reward_signed_distance: bool = False
    """Reward signed movement instead of new ground, as gym-super-mario-bros does."""
    reward_distance_cap: float = 30.0
    """Maximum rewarded distance per decision, in pixels; none with --ground stood."""
    reward_score_weight: float = 0.0
    """Reward per point of the game's score."""
    reward_flag: float = 50.0
    """Reward for the flag or the axe."""
    reward_death: float = 50.0
    """Penalty for dying."""
    reward_time_weight: float = 0.0
    """Penalty per tick of the game's clock."""
    reward_wrong_turn: float = 0.0
    """Penalty for each wrong turn in a maze."""
    reward_coin_weight: float = 0.0
    """Reward per coin."""
    reward_clip: float = 0.0
    """Largest reward or penalty per decision, before scaling (0 = unlimited)."""
    reward_function: str = ""
    """Function of the telemetry that replaces all terms, as file.py:name."""
    reward_scale_start: float = 0.02
    """Initial scale of all reward terms."""
    reward_scale_final: float = 0.02
    """Final scale of all reward terms."""
    reward_scale_anneal_steps: int = 0
    """Decisions from the initial to the final scale (0 = constant)."""

    def __post_init__(self) -> None:
        require(self, "reward_scale_anneal_steps", "reward_clip", at_least=0)
        require(self, "reward_distance_cap", above=0)
        if self.reward_function:
            custom_code.parse(self.reward_function)


NES_PY_REWARD = RewardConfig(
    reward_signed_distance=True, reward_flag=0.0, reward_death=25.0, reward_time_weight=1.0, reward_wrong_turn=0.0,
    reward_scale_start=1.0, reward_scale_final=1.0, reward_distance_cap=20.0, reward_clip=15.0,
)  # fmt: skip
"""The reward of gym-super-mario-bros: the same where a decision is one frame, as there. Over more frames it is the sum
of theirs, but for the decision that dies: -15, without what the frames before the last earned."""


class RewardArrays:
    """Memory for the rewards of one step; at first nothing is earned."""

    def __init__(self, num_envs: int) -> None:
        self.rows = np.zeros((len(TERMS), num_envs), np.float32)
        self.total = np.empty(num_envs, np.float32)
        self.dx = np.zeros(num_envs, np.int32)
        self.terms: dict[str, Floats] = dict(zip(TERMS, self.rows, strict=True))


class RewardShaper:
    """Turns two successive telemetries into rewards, and remembers how far the scale has been annealed."""

    def __init__(self, config: RewardConfig, num_envs: int, *, by_jumps: bool = False) -> None:
        self.config = config
        # Where ground counts once the player stands on it, a whole jump is paid in one decision.
        self.cap = math.inf if by_jumps and not config.reward_signed_distance else config.reward_distance_cap
        self.function: RewardFunction | None = (
            custom_code.load(config.reward_function) if config.reward_function else None
        )
        self.num_envs = num_envs
        self.decisions = 0

    def scale(self) -> float:
        """The present scale: linear from start to final over the annealing steps. A custom reward has none."""
        c = self.config
        if self.function is not None:
            return 1.0
        if c.reward_scale_anneal_steps == 0:
            return c.reward_scale_start
        done = min(1.0, self.decisions / c.reward_scale_anneal_steps)
        return c.reward_scale_start + done * (c.reward_scale_final - c.reward_scale_start)

    def of_telemetry(self, before: Ints, after: Ints, fresh: NDArray[np.bool_], out: RewardArrays) -> None:
        """Rewards, their terms and the movement in x from two telemetry arrays [fields, N]; the terms add up.

        Those in `fresh` only began an episode and earn nothing.
        """
        c = self.config
        if self.function is not None:
            fields = dict(zip(FIELDS, after, strict=True))
            fields_before = dict(zip(FIELDS, before, strict=True))
            fields["died"] = died_between(fields_before, fields)
            out.rows[:] = 0
            custom = out.terms["custom"]
            custom[:] = np.where(fresh, 0, self._custom(fields_before, fields))
            out.total[:] = custom
            np.subtract(after[FIELDS.index("x_pos")], before[FIELDS.index("x_pos")], out=out.dx)
            self.decisions += self.num_envs
            return
        scale = self.scale()
        worth = [
            c.reward_distance_weight * scale,
            c.reward_score_weight * scale,
            c.reward_flag * scale,
            -c.reward_death * scale,
            c.reward_time_weight * scale,
            -c.reward_wrong_turn * scale,
            c.reward_coin_weight * scale,
        ]
        rows = out.rows[: len(BUILT_IN)]
        clip = c.reward_clip * abs(scale) or math.inf
        shape_rewards(
            before, after, fresh, c.reward_signed_distance, self.cap, clip, worth, rows, out.total, out.dx
        )
        self.decisions += self.num_envs

    def _custom(self, before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> Floats:
        assert self.function is not None
        try:
            with custom_code.blamed("The reward function"):
                rewards = np.asarray(self.function(before, after), np.float32)
        except ConfigError as error:
            if isinstance(error.__cause__, KeyError):
                raise ConfigError(
                    f"{error}. The keys are {', '.join(before)}; the second dictionary also has died."
                ) from error.__cause__
            raise
        if rewards.shape != (self.num_envs,) or not np.isfinite(rewards).all():
            shown = "a reward that is not finite" if rewards.shape == (self.num_envs,) else str(rewards.shape)
            raise ConfigError(
                f"The reward function gave {shown}: give one finite number for each of {self.num_envs} environments."
            )
        return rewards

    def state_dict(self) -> dict[str, int]:
        return {"decisions": self.decisions}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self.decisions = int(state["decisions"])
