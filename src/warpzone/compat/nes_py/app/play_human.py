"""Playing an environment by the keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from warpzone.compat.viewer import ImageViewer

NO_BUTTONS = 0


def play_human(env: Any, callback: Callable[..., None] | None = None) -> None:
    """Play in a window at the console's speed until Escape; close the environment.

    After each step `callback(state, action, reward, done, next_state)` is called.
    """
    shape = env.observation_space.shape
    assert len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3)), "the observations are no frames"
    if hasattr(env, "get_keys_to_action"):
        actions = env.get_keys_to_action()
    elif hasattr(env.unwrapped, "get_keys_to_action"):
        actions = env.unwrapped.get_keys_to_action()
    else:
        raise ValueError("env has no get_keys_to_action method")
    viewer = ImageViewer(
        env.spec.id if env.spec is not None else type(env).__name__,
        shape[0],
        shape[1],
        monitor_keyboard=True,
        relevant_keys={key for keys in actions for key in keys},
    )
    frame = 1 / env.metadata.get("video.frames_per_second", env.metadata.get("render_fps", 60))
    done, state = True, None
    try:
        while not viewer.is_escape_pressed:
            due = time.monotonic() + frame
            if done:
                state = env.reset()
                viewer.show(env.unwrapped.screen)
            action = actions.get(viewer.pressed_keys, NO_BUTTONS)
            result = env.step(action)
            next_state, reward = result[:2]
            done = result[2] if len(result) == 4 else result[2] or result[3]
            viewer.show(env.unwrapped.screen)
            if callback is not None:
                callback(state, action, reward, done, next_state)
            state = next_state
            time.sleep(max(0.0, due - time.monotonic()))
    except KeyboardInterrupt:
        pass
    viewer.close()
    env.close()


__all__ = ["play_human"]
