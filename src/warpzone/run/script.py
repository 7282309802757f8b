"""Scripted play before training: proof that buttons, progress and rewards work together."""

from __future__ import annotations

from collections.abc import Callable

from warpzone.envs.actions import action_names
from warpzone.envs.make import make_envs
from warpzone.envs.scripts import parse_sequence, play_script, probe_forward_actions, scripted_actions
from warpzone.envs.vector import MarioVectorEnv
from warpzone.run.config import ScriptConfig, TrainConfig


def play_scripts(config: TrainConfig, say: Callable[[str], None]) -> dict[str, float]:
    """Play what the settings ask for in an environment of its own and say what it earned; the sums of the shaping."""
    script = config.script
    if not script.is_wanted:
        return {}
    stage = config.stage.names()[0]
    view = config.view.fixed(stall_limit=0)
    envs = make_envs(
        view, 1, [stage], threads=1, seed=config.run.seed, frame_stack=1, reward=config.reward,
        rom=config.stage.rom or None,
    )  # fmt: skip
    try:
        forward = _forward(script, envs, say)
        actions = _actions(script, view.action_type, view.frame_skip, forward)
        if not actions:
            return {}
        sums = play_script(envs, actions)
    finally:
        envs.close()
    listed = " ".join(f"{name}={value:.2f}" for name, value in sums.items())
    say(f"[reward] scripted start of {stage}: {len(actions)} decisions, {listed}")
    if sums["shaping_raw_sum"] <= 0:
        say(
            "[reward][warn] the scripted start earned nothing: check --scripted-sequence, "
            "--forward-action-id and the weights of the rewards"
        )
    return sums


def _forward(script: ScriptConfig, envs: MarioVectorEnv, say: Callable[[str], None]) -> int:
    """The action that walks forward: the one given, the one found, or running right."""
    names = action_names(envs.view.action_type)
    if not script.probe_forward_actions:
        given = script.forward_action_id
        return names.index("RIGHT+B") if given is None else given
    found, gains = probe_forward_actions(envs)
    tried = " ".join(f"{name}={gain:.0f}" for name, gain in zip(names, gains, strict=True))
    say(f"[reward] probe: action {found} ({names[found]}) goes furthest; pixels gained: {tried}")
    if script.forward_action_id is None:
        return found
    if script.forward_action_id != found:
        given = script.forward_action_id
        say(f"[reward][warn] --forward-action-id {given} ({names[given]}) is not the one that goes furthest")
    return script.forward_action_id


def _actions(script: ScriptConfig, action_type: str, frame_skip: int, forward: int) -> list[int]:
    sequence = parse_sequence(script.scripted_sequence) if script.scripted_sequence else []
    walk = [forward] * -(-script.scripted_forward_frames // frame_skip)
    return [*scripted_actions(sequence, action_type, frame_skip), *walk]
