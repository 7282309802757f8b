"""The whole game in one go: from power-on to the last axe, with the game's own lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpzone.agents.evaluation import OnProgress, Trial, trial_envs
from warpzone.agents.intervals import wilson
from warpzone.agents.play import play
from warpzone.envs.stages import GAME, STAGES_PER_WORLD
from warpzone.envs.telemetry import End, died

if TYPE_CHECKING:
    from warpzone.agents.agent import Agent

MOST_DECISIONS = 200_000
"""A game has its own timer; this bounds one that could earn lives for ever."""


@dataclass(frozen=True)
class Game:
    """One game. A stage is passed when the next one begins, also through a warp zone, or with the last axe."""

    passed_without_death: int
    """Stages passed before the first death."""
    passed: int
    """Stages passed in all, with the game's lives."""
    deaths: int
    warps: int
    """Times a warp zone left stages out."""
    finished: bool
    decisions: int
    last: str
    """The stage in which it ended."""


@dataclass(frozen=True)
class GameResult:
    """The games of one mode."""

    games: tuple[Game, ...]

    @property
    def flawless(self) -> int:
        """Games finished without a death."""
        return sum(game.finished and game.deaths == 0 for game in self.games)

    def as_dict(self) -> dict[str, Any]:
        """Counts, means and the shares that finished with their 95 % intervals (Wilson), and every game."""
        total, finished = len(self.games), sum(game.finished for game in self.games)
        return {
            "games": total,
            "finished": finished,
            "finished_interval": wilson(finished, total),
            "finished_without_death": self.flawless,
            "finished_without_death_interval": wilson(self.flawless, total),
            "mean_passed_without_death": float(np.mean([game.passed_without_death for game in self.games])),
            "most_passed_without_death": max(game.passed_without_death for game in self.games),
            "mean_passed": float(np.mean([game.passed for game in self.games])),
            "most_passed": max(game.passed for game in self.games),
            "ended_in": dict(Counter(game.last for game in self.games).most_common()),
            "each": [asdict(game) for game in self.games],
        }

    def __str__(self) -> str:
        told = self.as_dict()
        return (
            f"{told['games']} games: {told['finished_without_death']} finished without a death, {told['finished']} "
            f"with the game's lives. Stages passed before the first death: {told['mean_passed_without_death']:.1f} on "
            f"average, at most {told['most_passed_without_death']}; in all: {told['mean_passed']:.1f}, at most "
            f"{told['most_passed']}."
        )


def evaluate_game(
    agent: Agent, trial: Trial, on_progress: OnProgress | None = None, **options: Any
) -> GameResult:
    """Play the trial's number of whole games, all at once."""
    count = trial.episodes_of()
    # The game's own timer ends a life that gets nowhere, and ground walked again after a death is no stall.
    view = replace(trial.view(agent.view), stall_limit=0, step_limit=MOST_DECISIONS)
    with trial_envs(view, GAME, count, trial, **options) as envs:
        counter = GameCounter(count)
        games: dict[int, Game] = {}
        playing = np.ones(count, np.bool_)
        for step in play(agent, envs, seed=trial.seed, greedy=trial.mode == "greedy", rows=playing):
            counter.look(step.final)
            for i in np.flatnonzero(step.over).tolist():
                games.setdefault(i, counter.game(i, step.final))
                playing[i] = False
            if on_progress and step.over.any():
                on_progress(len(games), count)
            if len(games) == count:
                break
        return GameResult(tuple(games[i] for i in range(count)))


class GameCounter:
    """Follows games from decision to decision, one in each environment."""

    def __init__(self, count: int) -> None:
        self._before = {"index": np.full(count, _index(1, 1)), "life": np.zeros(count, np.int64)}
        self._passed, self._flawless, self._deaths, self._warps = np.zeros((4, count), np.int64)

    def look(self, told: Mapping[str, NDArray[Any]]) -> None:
        now = {"index": _index(told["world"], told["stage"]), "life": told["life"], "end": told["end"]}
        lost = died(self._before, now)
        ahead = np.where(lost, 0, now["index"] - self._before["index"])
        ahead += now["end"] == End.AXE
        self._passed += ahead > 0
        self._warps += ahead > 1
        self._deaths += lost
        self._flawless = np.where(self._deaths == 0, self._passed, self._flawless)
        self._before = {name: values.copy() for name, values in now.items()}

    def game(self, i: int, told: Mapping[str, NDArray[Any]]) -> Game:
        return Game(
            passed_without_death=int(self._flawless[i]),
            passed=int(self._passed[i]),
            deaths=int(self._deaths[i]),
            warps=int(self._warps[i]),
            finished=bool(told["end"][i] == End.AXE),
            decisions=int(told["steps"][i]),
            last=f"{told['world'][i]}-{told['stage'][i]}",
        )


def _index(world: Any, stage: Any) -> Any:
    return world * STAGES_PER_WORLD + stage
