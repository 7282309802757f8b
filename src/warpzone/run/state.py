"""What a checkpoint holds, and how a run resumes from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from warpzone.checkpoints.fitting import fit_weights
from warpzone.collect.interfaces import Environments
from warpzone.collect.overlap import OverlappedCollector
from warpzone.errors import CheckpointError, ClusterError
from warpzone.learn.learner import Learner
from warpzone.learn.random_state import is_continued
from warpzone.run.build import Components

Say = Callable[[str], None]


class Stateful(Protocol):
    """Whatever a checkpoint holds the state of."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any) -> None: ...


@dataclass
class RunState:
    """All that a checkpoint holds, by its key in the file.

    `learned` is restored before the collector starts, so that its first actions are of these weights. `playing` is the
    environments in mid-episode: saved only between updates, restored after the collector has started.
    """

    learned: Mapping[str, Stateful]
    playing: Mapping[str, Stateful]

    def state_dict(self, *, with_play: bool) -> dict[str, Any]:
        state = {key: part.state_dict() for key, part in self.learned.items()}
        state |= {key: part.state_dict() if with_play else None for key, part in self.playing.items()}
        return {**state, "random": random_state()}

    def restore_learned(self, saved: Mapping[str, Any]) -> None:
        """Load what was learned and counted. Parts that an older version did not save keep their start values."""
        # Older checkpoints count the decisions in `progress` only.
        learner = {"decisions": saved["progress"]["global_step"], **saved["learner"]}
        for key, part in self.learned.items():
            if key == "learner":
                part.load_state_dict(learner)
            elif key in saved:
                part.load_state_dict(saved[key])

    def restore_play(self, saved: Mapping[str, Any], say: Say) -> None:
        """Put the environments back into their episodes; where that is not possible, episodes start over."""
        # Earlier versions kept the starts along trails among what was learned.
        saved = {"trail_starts": saved.get("backward"), "arrivals": {}, **saved}
        try:
            for key, part in self.playing.items():
                if saved.get(key) is None:
                    raise CheckpointError("the environments were not saved")
                part.load_state_dict(saved[key])
        except CheckpointError as error:
            say(f"[train] {str(error).rstrip('.')}: episodes start over")
        restore_random_state(saved["random"])


@dataclass
class LearnerState:
    """The learner, with weights of `source` that do not fit left out and named."""

    learner: Learner
    source: str
    say: Say

    def state_dict(self) -> dict[str, Any]:
        return self.learner.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if not is_continued(self.learner.generator, state["generator"]):
            self.say("[train] the checkpoint is from another kind of device: random numbers start over")
        weights = _fitted(self.learner, state["policy"], self.source, self.say)
        self.learner.load_state_dict({**state, "policy": weights})


@dataclass
class RewardStates:
    """How far the reward scale of each vector of environments is annealed."""

    envs: Sequence[Environments]

    def state_dict(self) -> list[dict[str, Any]]:
        return [part.rewards.state_dict() for part in self.envs]

    def load_state_dict(self, state: Sequence[Mapping[str, int]]) -> None:
        decisions = sum(saved["decisions"] for saved in state)
        for part in self.envs:
            part.rewards.load_state_dict({"decisions": decisions // len(self.envs)})


@dataclass
class EnvironmentStates:
    """The emulators themselves, in mid-episode."""

    components: Components

    def state_dict(self) -> list[dict[str, Any]] | None:
        """None where environments were lost just now: then their episodes start over."""
        try:
            return [part.state_dict() for part in self.components.envs]
        except ClusterError:
            return None

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Raises CheckpointError, with nothing changed, where the environments are of another kind or number."""
        envs = self.components.envs
        savable = all(part.has_snapshots for part in envs)
        moving = isinstance(self.components.collector, OverlappedCollector)
        sizes = [len(saved["consoles"]) for saved in state]
        if not savable or moving or sizes != [part.num_envs for part in envs]:
            raise CheckpointError("the saved environments do not fit")
        for part, saved in zip(envs, state, strict=True):
            part.load_state_dict(dict(saved))


def begin_with(weights: dict[str, torch.Tensor], name: str, learner: Learner, say: Say) -> None:
    """Give a new run the weights of another agent and nothing else, before the collector starts."""
    say(f"[train] starting from the weights of {name}")
    fitted = _fitted(learner, weights, name, say)
    learner.load_state_dict({**learner.state_dict(), "policy": fitted})


def _fitted(
    learner: Learner, weights: dict[str, torch.Tensor], name: str, say: Say
) -> dict[str, torch.Tensor]:
    """Weights for the learner's policy; it says what did not fit."""
    own = learner.policy.state_dict()
    fit = fit_weights(weights, own, name)
    for line in fit.report():
        say(line)
    return {**own, **fit.weights}


def random_state() -> dict[str, Any]:
    """The global random states of Python, NumPy and torch."""
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    version, internal, gauss = random.getstate()
    return {
        "python": [version, list(internal), gauss],
        "numpy": [str(kind), np.asarray(keys), int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, np.asarray(keys), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
