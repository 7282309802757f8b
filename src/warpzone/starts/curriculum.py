"""Which stage comes next: sampled by how far it is from solved and by recent progress, never starving one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["fixed", "uniform", "progress"]

FAST, SLOW = 0.05, 0.01
"""Update rates of the two moving averages of a stage's success."""
FLOOR = 0.25
"""Share of decisions spread evenly, so that mastered and hopeless stages are revisited."""
MOVEMENT_WEIGHT = 2.0
"""Weight of a change in a stage's success beside its distance from solved; chance alone changes it by 0.1."""
_OF_STAGES = ("fast", "slow", "furthest", "length", "played", "last_played")


class Curriculum:
    """Shares of the stages among the next episodes.

    Success of an episode is the share of the furthest known distance it covered, 1 for a clear, so that a stage never
    cleared still shows progress. A stage's share follows its distance from solved, how much its success has
    changed lately, and how long it has not been played. Shares are of decisions: where the agent dies early, episodes
    are short, and sampled evenly such a stage would be played least though it needs the most.
    """

    def __init__(self, kind: Kind, stages: Sequence[str]) -> None:
        n = len(stages)
        self.kind = kind
        self.stages = list(stages)
        self.fast = np.zeros(n)
        self.slow = np.zeros(n)
        self.furthest = np.ones(n)
        self.length = np.ones(n)
        self.played = np.zeros(n, np.int64)
        self.last_played = np.zeros(n, np.int64)
        self.episodes = 0
        self.mix: NDArray[np.float64] | None = None
        """Fixed shares that replace those of the curriculum, from the next episode on."""

    @property
    def adapts(self) -> bool:
        """Whether the shares change during the run."""
        return (self.kind == "progress" or self.mix is not None) and len(self.stages) > 1

    def observe(self, stage: int, cleared: bool, x_max: int, length: int) -> None:
        """Record a finished episode from the true start of a stage."""
        self.episodes += 1
        self.furthest[stage] = max(self.furthest[stage], x_max)
        success = 1.0 if cleared else 0.5 * x_max / self.furthest[stage]
        first = self.played[stage] == 0
        self.fast[stage] += (1.0 if first else FAST) * (success - self.fast[stage])
        self.slow[stage] += (1.0 if first else SLOW) * (success - self.slow[stage])
        self.length[stage] += (1.0 if first else FAST) * (max(length, 1) - self.length[stage])
        self.played[stage] += 1
        self.last_played[stage] = self.episodes

    def weights(self) -> NDArray[np.float64]:
        """The probability of each stage."""
        n = len(self.stages)
        uniform = np.full(n, 1.0 / n)
        if not self.adapts:
            return uniform
        if self.mix is not None:
            return self.mix
        staleness = (self.episodes - self.last_played) / max(1, self.episodes)
        score = (1.0 - self.fast) + MOVEMENT_WEIGHT * np.abs(self.fast - self.slow) + staleness
        score[self.played == 0] = score.max() + 1.0
        decisions = FLOOR * uniform + (1.0 - FLOOR) * score / score.sum()
        episodes = decisions / self.length
        shares: NDArray[np.float64] = episodes / episodes.sum()
        return shares

    def shares(self) -> dict[str, float]:
        """The same by name, for display."""
        return {
            name: round(share, 4) for name, share in zip(self.stages, self.weights().tolist(), strict=True)
        }

    def state_dict(self) -> dict[str, Any]:
        of_stages = {name: getattr(self, name).tolist() for name in _OF_STAGES}
        return {"stages": list(self.stages), **of_stages, "episodes": self.episodes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what is known of the stages that both have."""
        for old, name in enumerate(state["stages"]):
            if name in self.stages:
                new = self.stages.index(name)
                for key in _OF_STAGES:
                    # Runs saved before shares were of decisions have no lengths.
                    if key in state:
                        getattr(self, key)[new] = state[key][old]
        self.episodes = state["episodes"]
