"""The engine's telemetry and ends of episodes, frame by frame, are those of the slow reference in Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.envs.telemetry_reference import decode, episode_end, flag_get
from warpzone.envs.stages import parse_stage
from warpzone.envs.telemetry import End
from warpzone.envs.vector import MarioVectorEnv


@pytest.mark.parametrize("stage", ["1-1", "1-2", "4-4", "game"])
def test_every_field_is_what_the_reference_reads_from_ram(stage: str) -> None:
    envs = MarioVectorEnv(
        6, stage, frame_skip=1, frame_stack=1, size=8, stall_limit=400, autoreset_mode="disabled"
    )
    dice = np.random.default_rng(3)
    envs.reset(seed=3)
    ends: set[End] = set()
    for t in range(900):
        if t % 6 == 0:
            actions = dice.choice([3, 4, 4, 2, 6], 6)
        _, _, terminated, truncated, info = envs.step(actions)
        done = terminated | truncated
        # A frame after which scenes were skipped is not the one that the engine looked at.
        seen = info["player_state"] == 8
        for i, ram in enumerate(envs.ram):
            x = int(info["x_pos"][i])
            assert x == int(np.int8(ram[0x6D])) * 256 + int(ram[0x86])
            told = {name: int(info[name][i]) for name in decode(ram) if name != "status"}
            assert told == {name: value for name, value in decode(ram).items() if name != "status"}
            if seen[i] or terminated[i]:
                end = episode_end(ram, parse_stage(stage))
                assert truncated[i] or End(int(info["end"][i])) is end
                assert bool(info["flag_get"][i]) == flag_get(ram)
                ends.add(end)
        if done.any():
            envs.reset(options={"reset_mask": done})
    assert End.NONE in ends
    assert stage == "game" or End.DEATH in ends
    envs.close()
