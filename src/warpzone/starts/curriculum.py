"""Which stage comes next: drawn by what it lacks and by recent learning progress, never starving one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["fixed", "uniform", "progress"]

FAST, SLOW = 0.05, 0.01
"""How quickly the two averages of a stage's success follow its episodes."""
FLOOR = 0.25
"""Share of all decisions that is spread evenly, so that mastered and hopeless stages are revisited."""
MOVEMENT_WEIGHT = 2.0
"""How much the movement of a stage's success counts beside what it lacks; chance alone moves it by 0.1."""


class Curriculum:
    """Shares of the stages among the next episodes.

    Success of an episode is how much of the furthest known way it got, 1 for a clear, so that a stage which nobody
    clears yet still shows progress. A stage earns its share by what it lacks, by how much its success has moved
    lately, and by how long it has not been played. The share is one of decisions: where the agent dies soon, episodes
    are short, and drawn evenly such a stage would have the least of the play though it needs the most.
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

    @property
    def adapts(self) -> bool:
        """Whether the shares change while the run goes on."""
        return (self.kind == "progress" or self.mix is not None) and len(self.stages) > 1

    def fix(self, mix: NDArray[np.float64]) -> None:
        """Draw the stages by these shares from the next episode on, whatever is learned of them."""
        self.mix = mix

    def observe(self, stage: int, cleared: bool, x_max: int, length: int) -> None:
        """One episode from the true start of a stage is over."""
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
        """The same by name, for people to look at."""
        return {
            name: round(share, 4) for name, share in zip(self.stages, self.weights().tolist(), strict=True)
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "stages": list(self.stages),
            "fast": self.fast.tolist(),
            "slow": self.slow.tolist(),
            "furthest": self.furthest.tolist(),
            "length": self.length.tolist(),
            "played": self.played.tolist(),
            "last_played": self.last_played.tolist(),
            "episodes": self.episodes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what is known of the stages that both have."""
        for old, name in enumerate(state["stages"]):
            if name in self.stages:
                new = self.stages.index(name)
                for key in ("fast", "slow", "furthest", "length", "played", "last_played"):
                    # Runs of before the shares were of decisions know no lengths.
                    if key in state:
                        getattr(self, key)[new] = state[key][old]
        self.episodes = state["episodes"]
