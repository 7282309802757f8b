"""Scripted play: fixed sequences of buttons, and finding the action that moves forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpzone.envs.actions import action_names, parse_buttons
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError

MAX_FRAMES = 100_000


@dataclass(frozen=True)
class ScriptedPart:
    """Buttons held for a number of frames."""

    buttons: int
    frames: int


def parse_sequence(text: str) -> list[ScriptedPart]:
    """Parse 'START:8,RIGHT+B:180': buttons and frames."""
    parts: list[ScriptedPart] = []
    for item in filter(None, (piece.strip() for piece in text.split(","))):
        name, colon, frames = item.rpartition(":")
        if not colon or not frames.strip().isdecimal():
            raise ConfigError(
                f"Scripted part {item!r} is not of the form BUTTONS:FRAMES, such as RIGHT+B:180."
            )
        if not 1 <= int(frames) <= MAX_FRAMES:
            raise ConfigError(f"Scripted part {item!r}: frames are 1 to {MAX_FRAMES}.")
        parts.append(ScriptedPart(parse_buttons(name), int(frames)))
    if not parts:
        raise ConfigError("The scripted sequence is empty: write for example 'START:8,RIGHT+B:180'.")
    return parts


def scripted_actions(parts: Sequence[ScriptedPart], action_type: str, frame_skip: int) -> list[int]:
    """The sequence as decisions: the nearest action of the set, once for each `frame_skip` frames."""
    names = action_names(action_type)
    bits = [parse_buttons(name) for name in names]

    def nearest(buttons: int) -> int:
        return min(range(len(bits)), key=lambda i: (bin(bits[i] ^ buttons).count("1"), i))

    return [nearest(part.buttons) for part in parts for _ in range(-(-part.frames // frame_skip))]


def play_script(envs: MarioVectorEnv, actions: Sequence[int]) -> dict[str, float]:
    """Play the same actions in every environment from a reset; sums of shaping over the first episode of each."""
    envs.reset()
    raw = scaled = distance = 0.0
    alive = np.ones(envs.num_envs, np.bool_)
    for action in actions:
        scale = envs.rewards.scale()
        _, reward, terminated, truncated, info = envs.step(np.full(envs.num_envs, action))
        scaled += float(reward[alive].sum())
        raw += float(reward[alive].sum()) / scale if scale else 0.0
        distance += float(info["dx"][alive].clip(min=0).sum())
        alive &= ~(terminated | truncated)
        if not alive.any():
            break
    return {"shaping_raw_sum": raw, "shaping_scaled_sum": scaled, "distance_delta_sum": distance}


def probe_forward_actions(envs: MarioVectorEnv, decisions: int = 30) -> tuple[int, list[float]]:
    """Try every action for a while from the same start; the one that got furthest, and how far each did."""
    gains: list[float] = []
    for action in range(envs.view.num_actions):
        _, info = envs.reset(seed=0)
        start, best = info["x_pos"].copy(), info["x_pos"].copy()
        alive = np.ones(envs.num_envs, np.bool_)
        for _ in range(decisions):
            _, _, terminated, truncated, info = envs.step(np.full(envs.num_envs, action))
            best = np.where(alive, np.maximum(best, info["x_pos"]), best)
            alive &= ~(terminated | truncated)
        gains.append(float((best - start).mean()))
    return int(np.argmax(gains)), gains
