"""A gym environment where Gymnasium's is wanted: by Stable-Baselines3 2, and by Gymnasium's own wrappers."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
from gymnasium import spaces

from warpzone.compat.four_values import five_of, two_of
from warpzone.compat.gym7 import gym
from warpzone.compat.gym_super_mario_bros._registration import make
from warpzone.compat.ids import IDS


def convert_space(space: Any) -> Any:
    """Gymnasium's space of gym's."""
    kind = type(space).__name__
    if isinstance(space, spaces.Space):
        return space
    if kind == "Box":
        return spaces.Box(space.low, space.high, space.shape, space.dtype)
    if kind == "Discrete":
        return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(space.nvec)
    if kind == "MultiBinary":
        return spaces.MultiBinary(space.n)
    if kind == "Tuple":
        return spaces.Tuple([convert_space(part) for part in space.spaces])
    if kind == "Dict":
        return spaces.Dict({name: convert_space(part) for name, part in space.spaces.items()})
    raise NotImplementedError(f"Gymnasium has no space for gym's {space}.")


class GymnasiumEnv(gymnasium.Env[Any, Any]):
    """A gym environment, of four values or five, as Gymnasium's: five values of `step` and two of `reset`.

    Takes the arguments of the two classes of shimmy that Stable-Baselines3 asks for.
    """

    def __init__(
        self,
        env_id: str | None = None,
        make_kwargs: dict[str, Any] | None = None,
        env: Any = None,
        render_mode: str | None = None,
    ) -> None:
        self.gym_env = gym.make(env_id, **(make_kwargs or {})) if env is None else env
        self.observation_space = convert_space(self.gym_env.observation_space)
        self.action_space = convert_space(self.gym_env.action_space)
        self.metadata = {**self.gym_env.metadata, "render_modes": ["rgb_array", "human"]}
        self.render_mode = render_mode or getattr(self.gym_env, "render_mode", None)
        self.reward_range = getattr(self.gym_env, "reward_range", (-float("inf"), float("inf")))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. Wrappers of old have a `reset` without arguments, so that it gets none if it can."""
        arguments: dict[str, Any] = {} if options is None else {"options": options}
        if seed is not None and hasattr(self.gym_env.unwrapped, "seed"):
            self.gym_env.unwrapped.seed(seed)
        elif seed is not None:
            arguments["seed"] = seed
        observation, info = two_of(self.gym_env.reset(**arguments))
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step of five values."""
        observation, reward, terminated, truncated, info = five_of(self.gym_env.step(action))
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """As the environment was made to."""
        return self.gym_env.render()

    def close(self) -> None:
        """Close the environment."""
        self.gym_env.close()

    def __getattr__(self, name: str) -> Any:
        if name == "gym_env":  # not there yet, as while it is unpickled
            raise AttributeError(name)
        return getattr(self.gym_env, name)


def _made(id: str, **arguments: Any) -> GymnasiumEnv:
    return GymnasiumEnv(env=make(id, **arguments))


def accept_gym_environments() -> None:
    """From now on Gymnasium's wrappers, Stable-Baselines3's among them, take gym environments.

    And Gymnasium knows the ids: Stable-Baselines3 2 makes the environments of `make_vec_env(id)` by it.
    """
    original = gymnasium.Wrapper.__init__
    if gym is gymnasium or hasattr(original, "takes_gym"):
        return
    for name in IDS.keys() - gymnasium.registry.keys():
        gymnasium.register(id=name, entry_point=partial(_made, name), disable_env_checker=True)

    def __init__(self: Any, env: Any) -> None:
        old = isinstance(env, gym.Env) and not isinstance(env, gymnasium.Env)
        original(self, GymnasiumEnv(env=env) if old else env)

    __init__.takes_gym = True  # type: ignore[attr-defined]
    gymnasium.Wrapper.__init__ = __init__  # type: ignore[method-assign]
