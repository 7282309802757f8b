"""gym 0.26's wrappers round environments of four values, as scripts for gym 0.21 stack them.

These wrappers unpack five values of `step` and two of `reset`. Here they take what they get, and give as many.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from warpzone.compat.gym7 import Wrapper, gym


def five_of(step: Any) -> Any:
    """The five values of a step that may have four."""
    if len(step) != 4:
        return step
    observation, reward, done, info = step
    truncated = bool(info.get("TimeLimit.truncated", False))
    return observation, reward, bool(done) and not truncated, truncated, info


def four_of(step: Any) -> Any:
    """The four values of a step that has five."""
    observation, reward, terminated, truncated, info = step
    if truncated and not terminated:
        info["TimeLimit.truncated"] = True
    return observation, reward, terminated or truncated, info


def two_of(reset: Any) -> Any:
    """Observation and info of a reset that may have given the observation alone."""
    pair = isinstance(reset, tuple) and len(reset) == 2 and isinstance(reset[1], dict)
    return reset if pair else (reset, {})


class Five:
    """An environment as a wrapper of gym 0.26 wants it; `four` says whether it was of another kind."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.four = False

    def step(self, action: Any) -> Any:
        """A step of five values."""
        step = self.env.step(action)
        self.four = len(step) == 4
        return five_of(step)

    def reset(self, **arguments: Any) -> Any:
        """Observation and info."""
        reset = self.env.reset(**arguments)
        pair = two_of(reset)
        self.four = pair is not reset
        return pair

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


def _either(method: Callable[..., Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """The method of a wrapper; what it gives goes through `back` if the environment below is of four values."""

    @functools.wraps(method)
    def either(self: Any, *arguments: Any, **named: Any) -> Any:
        env = self.env
        self.env = view = Five(env)
        try:
            given = method(self, *arguments, **named)
        finally:
            self.env = env
        return back(given) if view.four else given

    either.takes_four_values = True  # type: ignore[attr-defined]
    return either


def accept_four_values() -> None:
    """From now on gym's own wrappers take four values too. Nothing to do before gym 0.26."""
    if gym.__name__ != "gym" or not hasattr(gym.wrappers, "StepAPICompatibility"):
        return
    from gym.wrappers.env_checker import PassiveEnvChecker

    classes = {gym.ObservationWrapper, gym.RewardWrapper, PassiveEnvChecker}
    classes |= {
        found
        for found in vars(gym.wrappers).values()
        if isinstance(found, type) and issubclass(found, Wrapper)
    }
    # These are for either kind by themselves, and for vectors.
    for wrapper in classes - {gym.wrappers.StepAPICompatibility, gym.wrappers.VectorListInfo}:
        for name, back in (("step", four_of), ("reset", lambda pair: pair[0])):
            method = vars(wrapper).get(name)
            if method is not None and not hasattr(method, "takes_four_values"):
                setattr(wrapper, name, _either(method, back))
