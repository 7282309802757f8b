"""What a checkpoint holds, and how a run takes it up again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpzone.checkpoints.finding import ResumeSource, fit_weights
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.collect import OverlappedCollector
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import CheckpointError
from warpzone.learn.random_state import is_continued
from warpzone.run.build import Components
from warpzone.run.meters import EnvironmentMeter
from warpzone.starts.curriculum import Curriculum
from warpzone.starts.reverse_curriculum import ReverseCurriculum

if TYPE_CHECKING:
    from warpzone.run.folder import RunFolder
    from warpzone.run.loop import Progress


def run_state(
    parts: Components,
    run: RunFolder,
    progress: Progress,
    curriculum: Curriculum,
    backward: ReverseCurriculum,
    meter: EnvironmentMeter,
    elapsed_s: float,
    with_consoles: bool,
) -> dict[str, Any]:
    """Everything that an exact continuation needs; the consoles themselves only if asked for."""
    return {
        "learner": parts.learner.state_dict(),
        "collector": parts.collector.state_dict() if with_consoles else None,
        "envs": [envs.state_dict() for envs in parts.envs] if with_consoles else None,
        "rewards": [envs.rewards.state_dict() for envs in parts.envs],
        "episodes": run.episodes.state_dict(),
        "curriculum": curriculum.state_dict(),
        "backward": backward.state_dict(),
        "meter": meter.state_dict(),
        "progress": {
            "update": progress.update,
            "global_step": progress.global_step,
            "elapsed_s": elapsed_s,
            "evaluated_at": progress.evaluated_at,
        },
        "random": random_state(),
    }


def saved_run(source: ResumeSource) -> dict[str, Any]:
    """What `run_state` gave when the checkpoint was written."""
    return load_checkpoint(source.path).of_training()


def restore_learning(
    state: dict[str, Any],
    source: ResumeSource,
    parts: Components,
    run: RunFolder,
    progress: Progress,
    curriculum: Curriculum,
    backward: ReverseCurriculum,
    meter: EnvironmentMeter,
    say: Callable[[str], None],
) -> None:
    """Load what was learned and counted, before the collector starts: its first actions are of these weights."""
    learner = dict(state["learner"])
    if not is_continued(parts.learner.generator, learner["generator"]):
        say("[train] the checkpoint is of another kind of device: random numbers begin anew")
    learner["policy"] = _fitted(learner["policy"], str(source.path), parts, say)
    parts.learner.load_state_dict(learner)
    run.episodes.load_state_dict(state["episodes"])
    curriculum.load_state_dict(state["curriculum"])
    if curriculum.adapts:
        parts.set_stage_weights(curriculum.weights())
    if "backward" in state:
        backward.load_state_dict(state["backward"])
    if "meter" in state:
        meter.load_state_dict(state["meter"])
    decisions = sum(saved["decisions"] for saved in state["rewards"])
    for envs in parts.envs:
        envs.rewards.load_state_dict({"decisions": decisions // len(parts.envs)})
    saved_progress = state["progress"]
    progress.update, progress.global_step = saved_progress["update"], saved_progress["global_step"]
    progress.elapsed_s, progress.evaluated_at = saved_progress["elapsed_s"], saved_progress["evaluated_at"]


def begin_with(
    weights: dict[str, torch.Tensor], name: str, parts: Components, say: Callable[[str], None]
) -> None:
    """Give a new run the weights of another agent and nothing else, before the collector starts."""
    say(f"[train] beginning with the weights of {name}")
    fitted = _fitted(weights, name, parts, say)
    parts.learner.load_state_dict({**parts.learner.state_dict(), "policy": fitted})


def restore_play(
    state: dict[str, Any], parts: Components, backward: ReverseCurriculum, say: Callable[[str], None]
) -> None:
    """Put the consoles back to where they were, after the collector has started."""
    if _consoles_fit(state, parts) and _consoles_restored(state, parts, say):
        parts.collector.load_state_dict(state["collector"])
        if "backward" in state:
            backward.load_play(state["backward"])
    else:
        say("[train] the consoles were not saved or do not fit: episodes begin anew")
    restore_random_state(state["random"])


def _fitted(
    weights: dict[str, torch.Tensor], name: str, parts: Components, say: Callable[[str], None]
) -> dict[str, torch.Tensor]:
    """Weights for the learner's policy; it says what did not fit."""
    own = parts.learner.policy.state_dict()
    fit = fit_weights(weights, own, name)
    for line in fit.report():
        say(line)
    return {**own, **fit.weights}


def _consoles_fit(state: dict[str, Any], parts: Components) -> bool:
    saved = state["envs"]
    if saved is None or isinstance(parts.collector, OverlappedCollector):
        return False
    if not all(isinstance(envs, MarioVectorEnv) for envs in parts.envs):
        return False
    return [len(one["consoles"]) for one in saved] == [envs.num_envs for envs in parts.envs]


def _consoles_restored(state: dict[str, Any], parts: Components, say: Callable[[str], None]) -> bool:
    """Put them back; an engine of another version refuses the first of them, and nothing has changed."""
    try:
        for envs, saved in zip(parts.envs, state["envs"], strict=True):
            envs.load_state_dict(saved)
    except CheckpointError as error:
        say(f"[train][warn] {error}")
        return False
    return True


def random_state() -> dict[str, Any]:
    """The global streams of Python, NumPy and torch."""
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    version, internal, gauss = random.getstate()
    return {
        "python": [version, list(internal), gauss],
        "numpy": [str(kind), np.asarray(keys), int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
    }


def restore_random_state(state: dict[str, Any]) -> None:
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, np.asarray(keys), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
