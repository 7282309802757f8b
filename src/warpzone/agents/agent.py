"""A trained policy with what it needs to play: its view of the game and where it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone import custom_code
from warpzone.agents.weights_file import SUFFIX, TEMPERATURE, load_weights
from warpzone.checkpoints.finding import best_checkpoint, find_place
from warpzone.checkpoints.fitting import fit_weights
from warpzone.checkpoints.saving import load_checkpoint
from warpzone.checkpoints.settings import from_json
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.envs.config import ViewConfig
from warpzone.errors import CheckpointError
from warpzone.learn.native import NativePolicy, why_not_native
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy


def make_policy(
    model: ModelConfig, view: ViewConfig, value_heads: int, device: torch.device, learner: str, threads: int
) -> Policy:
    """The policy for a device: native if requested or, by default, if possible."""
    native = learner == "native" or (
        learner == "auto" and device.type == "cpu" and why_not_native(model) is None
    )
    if native:
        return NativePolicy(model, view.shape, view.num_actions, value_heads, threads=threads)
    return Policy(model, view.shape, view.num_actions, value_heads).to(device)


@dataclass
class Agent:
    """Acts for any number of environments, sampled or greedy, and keeps the policy's memory."""

    policy: Policy
    view: ViewConfig
    device: torch.device
    meta: CheckpointMeta | None = None
    temperature: float = field(default=1.0, init=False)
    """Divides the logits before actions are sampled: below 1 the probable ones are sampled more often. A card may say
    which one suits its agent."""
    rows: NDArray[np.bool_] | None = field(default=None, init=False)
    """Where actions count, bool [N], until the next `begin`; None: everywhere. On a CPU, the network is not evaluated
    elsewhere. Where they count they are the same."""
    _num_envs: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.meta is not None and TEMPERATURE in self.meta.extra:
            given = self.meta.extra[TEMPERATURE]
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
                raise CheckpointError(
                    f"The agent's card has the temperature {given!r}: it is a number above 0."
                )
            self.temperature = float(given)

    def begin(self, num_envs: int, seed: int, *, greedy: bool) -> None:
        """Reset the memory and sample from a new random stream."""
        self.greedy, self.rows = greedy, None
        self._num_envs = num_envs
        self.state = self.policy.initial_state(num_envs, self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed)

    @torch.no_grad()
    def act(
        self, observations: NDArray[np.uint8], starts: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], Tensor, Tensor]:
        """Choose one action for each observation, sampled unless `begin` asked for greedy actions.

        Args:
            observations: uint8 [N, channels, height, width], as the environments of `make_env` give them.
            starts: bool [N], true where an episode begins with this observation, so that a memory forgets the one
                before. Without it, episodes begin with the first call and whenever N changes.

        Returns:
            Actions int64 [N], the probabilities of all actions [N, A], and values [N].
        """
        is_new = self._num_envs != len(observations)
        if is_new:
            self.begin(len(observations), seed=0, greedy=False)
        if starts is None:
            starts = np.full(len(observations), is_new)
        rows = self.rows if self.device.type == "cpu" and not self.policy.is_recurrent else None
        some = rows is not None and not rows.all()
        seen = observations[rows] if some else observations
        obs = torch.from_numpy(np.ascontiguousarray(seen)).to(self.device)
        logits, values, self.state = self.policy.act(
            obs, self.state, torch.from_numpy(starts).to(self.device)
        )
        if some:
            where = torch.from_numpy(rows)
            logits = logits.new_zeros(len(where), logits.shape[-1]).index_put_((where,), logits)
            values = values.new_zeros(len(where)).index_put_((where,), values)
        probabilities = (logits.float() / self.temperature).softmax(-1)
        if self.greedy:
            actions = probabilities.argmax(-1)
        else:
            actions = torch.multinomial(probabilities, 1, generator=self.generator).squeeze(-1)
        return actions.cpu().numpy(), probabilities.cpu(), values.cpu()


def load_agent(
    checkpoint: str, runs_dir: Path, device: torch.device, threads: int = 1, *, encoder: str = "",
    trust_code: bool = False,
) -> Agent:  # fmt: skip
    """The agent of a checkpoint file, of a weights file with its card, or of a run's best checkpoint.

    A custom encoder is `encoder` as the user named it, or with `trust_code` what is kept in the run's folder.
    """
    path = resolve_checkpoint(checkpoint, runs_dir)
    weights, meta = read_weights(path)
    config = meta.config
    if "view" not in config or "model" not in config:
        raise CheckpointError(
            f"{path} does not say how its agent sees the game: it is not from `warpzone train`."
        )
    view, model = from_json(ViewConfig, config["view"]), from_json(ModelConfig, config["model"])
    if custom_code.is_reference(model.encoder):
        if encoder:
            model = replace(model, encoder=encoder)
        elif trust_code:
            custom_code.trust(model.encoder, path.parent.parent, path.parent)
    heads = int(meta.architecture.get("value_heads", 1))
    policy = make_policy(model, view, heads, device, "auto", threads)
    fit = fit_weights(weights, policy.state_dict(), str(path))
    if fit.missing or fit.unexpected:
        raise CheckpointError(f"{path} does not fit its own description: {'; '.join(fit.report())}.")
    policy.load_state_dict(fit.weights)
    policy.requires_grad_(False)
    return Agent(policy, view, device, meta)


def read_weights(path: Path) -> tuple[dict[str, Tensor], CheckpointMeta]:
    """The policy's weights in a weights file or a checkpoint, and their metadata."""
    if path.suffix == SUFFIX:
        return load_weights(path)
    loaded = load_checkpoint(path)
    return loaded.of_training()["learner"]["policy"], loaded.meta


def resolve_checkpoint(checkpoint: str, runs_dir: Path) -> Path:
    """A file, or the best checkpoint of a run given by name or folder."""
    place = find_place(checkpoint, runs_dir)
    return best_checkpoint(place) if place.is_dir() else place
