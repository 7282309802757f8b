"""Watching an environment play at random."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm


def play_random(env: Any, steps: int) -> None:
    """Take random actions for so many steps, in a window, and close the environment."""
    done = True
    try:
        for _ in tqdm(range(steps), "random play"):
            if done:
                env.reset()
            result = env.step(env.action_space.sample())
            done = result[2] if len(result) == 4 else result[2] or result[3]
            env.render()
    except KeyboardInterrupt:
        pass
    env.close()


__all__ = ["play_random"]
