"""The `gym` that the version-7 interface is written for, or Gymnasium under its name where gym is not installed."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stderr
from typing import Any

import numpy as np

if not hasattr(np, "bool8"):
    np.bool8 = np.bool_  # type: ignore[attr-defined]  # NumPy 2 has dropped it, and gym's checks of a step ask for it

gym: Any
with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
    # On import, gym says at length that it is unmaintained.
    warnings.simplefilter("ignore")
    try:
        import gym
        import gym.envs.registration
        import gym.error
    except ImportError:
        import gymnasium as gym
        import gymnasium.envs.registration
        import gymnasium.error

Env: Any = gym.Env
Wrapper: Any = gym.Wrapper
Box: Any = gym.spaces.Box
Discrete: Any = gym.spaces.Discrete
ResetNeeded: Any = getattr(gym.error, "ResetNeeded", AssertionError)
EnvSpec: Any = gym.envs.registration.EnvSpec


def register(**spec: Any) -> None:
    """Put an id into gym's registry, unless something is there already."""
    registry = gym.envs.registration.registry
    if spec["id"] in getattr(registry, "env_specs", registry):
        return
    try:
        gym.envs.registration.register(**spec, disable_env_checker=True)
    except TypeError:  # gym before 0.26 has no checker to disable
        gym.envs.registration.register(**spec)
