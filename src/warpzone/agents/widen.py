"""A larger action set for a trained agent."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from warpzone.checkpoints.saving import Checkpoint
from warpzone.checkpoints.settings import from_json
from warpzone.envs.actions import action_names
from warpzone.envs.config import ViewConfig
from warpzone.errors import CheckpointError, ConfigError
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy

RELUCTANCE = 1.5
"""Logits by which a new action starts below the mean of the known ones."""
_WEIGHT, _BIAS = "logits.weight", "logits.bias"


def widened(checkpoint: Checkpoint, action_type: str) -> Checkpoint:
    """The same agent with the actions of `action_type`, of which its own must be the first.

    It plays nearly as before: new actions start unlikely, and training raises those that help.
    """
    state = checkpoint.of_training()
    config = checkpoint.meta.config
    if "view" not in config:
        raise CheckpointError(
            f"{checkpoint.path} does not say how its agent sees the game: it is not from `warpzone train`."
        )
    view = from_json(ViewConfig, config["view"])
    old, new = action_names(view.action_type), action_names(action_type)
    if new[: len(old)] != old or len(new) == len(old):
        raise ConfigError(
            f"The actions of {view.action_type!r} are not the first of {action_type!r}: choose a larger set that has "
            "them."
        )
    learner = dict(state["learner"])
    more = len(new) - len(old)
    policy = dict(learner["policy"])
    policy[_WEIGHT] = _with_mean_rows(policy[_WEIGHT], more)
    policy[_BIAS] = _with_mean_rows(policy[_BIAS], more, below=RELUCTANCE)
    learner["policy"] = policy
    learner["optimizer"] = _optimizer(learner["optimizer"], checkpoint, view, more)
    # Decisions kept for replay are of the old actions.
    learner["replay"] = None
    meta = replace(
        checkpoint.meta,
        architecture={**checkpoint.meta.architecture, "num_actions": len(new)},
        config={**config, "view": {**config["view"], "action_type": action_type}},
    )
    return replace(checkpoint, state={**state, "learner": learner}, meta=meta)


def _with_mean_rows(values: Tensor, more: int, below: float = 0.0) -> Tensor:
    mean = values.mean(0, keepdim=True) - below
    return torch.cat([values, mean.expand(more, *values.shape[1:])]).contiguous()


def _optimizer(saved: dict[str, Any], checkpoint: Checkpoint, view: ViewConfig, more: int) -> dict[str, Any]:
    """Adam's moments for the new rows: first moment 0, second moment the mean of the known actions."""
    heads = int(checkpoint.meta.architecture.get("value_heads", 1))
    model = from_json(ModelConfig, checkpoint.meta.config["model"])
    names = [name for name, _ in Policy(model, view.shape, view.num_actions, heads).named_parameters()]
    optimizer = copy.copy(saved)
    optimizer["state"] = dict(saved["state"])
    for name in (_WEIGHT, _BIAS):
        index = names.index(name)
        entry = dict(optimizer["state"].get(index, {}))
        if entry:
            still = torch.zeros(more, *entry["exp_avg"].shape[1:]).to(entry["exp_avg"])
            entry["exp_avg"] = torch.cat([entry["exp_avg"], still]).contiguous()
            entry["exp_avg_sq"] = _with_mean_rows(entry["exp_avg_sq"], more)
            optimizer["state"][index] = entry
    return optimizer
