"""The ids of version 7 and `make`."""

from __future__ import annotations

from typing import Any

from warpzone.compat.gym7 import EnvSpec, ResetNeeded, Wrapper, gym, register
from warpzone.compat.gym_super_mario_bros.smb_env import SuperMarioBrosEnv
from warpzone.compat.gym_super_mario_bros.smb_random_stages_env import SuperMarioBrosRandomStagesEnv
from warpzone.compat.ids import IDS, MAX_EPISODE_STEPS


class Made(Wrapper):  # type: ignore[misc]
    """What `make` puts round an environment: the order of calls, a limit of steps, and the values asked for.

    Four values of `step` and a frame of `reset`, as gym had it up to 0.25; or, with `five`, five and two.
    """

    def __init__(self, env: Any, spec: Any, five: bool, render_mode: str | None) -> None:
        super().__init__(env)
        env.spec = spec
        self._five = five
        self._limit = spec.max_episode_steps
        self._left: int | None = None
        self._shown = render_mode

    @property
    def render_mode(self) -> str | None:
        """That of `make`."""
        return self._shown

    def reset(self, **arguments: Any) -> Any:
        """Begin an episode."""
        if not self._five:
            arguments.pop("return_info", None)
        frame = self.env.reset(**arguments)
        self._left = self._limit
        self._show_if_human()
        return (frame, {}) if self._five else frame

    def step(self, action: Any) -> Any:
        """A step; an error before the first reset."""
        if self._left is None:
            raise ResetNeeded("Cannot call env.step() before calling env.reset()")
        frame, reward, done, info = self.env.step(action)
        self._left -= 1
        truncated = self._left <= 0 and not done
        self._show_if_human()
        if self._five:
            return frame, reward, done, truncated, info
        if truncated:
            info["TimeLimit.truncated"] = True
        return frame, reward, done or truncated, info

    def render(self, *arguments: Any, **named: Any) -> Any:
        """In the mode given, else in that of `make`."""
        if self._five and self._left is None:  # gym is strict about it since it has five values
            raise ResetNeeded("Cannot call env.render() before calling env.reset()")
        if arguments or named or self._shown is None:
            return self.env.render(*arguments, **named)
        return self.env.render(mode="human" if self._shown == "human" else "rgb_array")

    def _show_if_human(self) -> None:
        if self._shown == "human":
            self.env.render(mode="human")


def make(id: Any, *given: Any, **named: Any) -> Any:
    """Make the environment of this id, with the arguments of gym's `make`; ids of other packages are left to gym.

    With `apply_api_compatibility` or `new_step_api`, `step` gives five values and `reset` two.
    """
    name = getattr(id, "id", id)
    return _make(name, *given, **named) if name in IDS else gym.make(id, *given, **named)


def _make(
    name: str,
    max_episode_steps: int | None = None,
    autoreset: bool = False,
    apply_api_compatibility: bool | None = None,
    disable_env_checker: bool | None = None,
    new_step_api: bool | None = None,
    render_mode: str | None = None,
    **arguments: Any,
) -> Any:
    entry = IDS[name]
    env = (SuperMarioBrosRandomStagesEnv if entry.random else SuperMarioBrosEnv)(
        **{**entry.arguments, **arguments}
    )
    spec = EnvSpec(
        id=name,
        entry_point=_entry_point(entry.random),
        max_episode_steps=max_episode_steps or MAX_EPISODE_STEPS,
        reward_threshold=MAX_EPISODE_STEPS,
        nondeterministic=True,
        kwargs=dict(entry.arguments),
    )
    made = Made(env, spec, bool(apply_api_compatibility or new_step_api), render_mode)
    return gym.wrappers.AutoResetWrapper(made) if autoreset else made


def _entry_point(random: bool) -> str:
    name = "SuperMarioBrosRandomStagesEnv" if random else "SuperMarioBrosEnv"
    return f"warpzone.compat.gym_super_mario_bros:{name}"


for _id, _entry in IDS.items():
    register(
        id=_id,
        entry_point=_entry_point(_entry.random),
        max_episode_steps=MAX_EPISODE_STEPS,
        reward_threshold=MAX_EPISODE_STEPS,
        nondeterministic=True,
        kwargs=dict(_entry.arguments),
    )

__all__ = ["make"]
