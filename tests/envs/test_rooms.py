"""Rooms: ground in the room behind a pipe counts, although the game names that room long before."""

from __future__ import annotations

import numpy as np

from warpzone.envs.vector import MarioVectorEnv
from warpzone.starts.trails import Trail

NEXT_POINTER, AREA_TYPE, AREA_NUMBER = 0x0750, 0x074E, 0x074F


def test_each_room_is_paid_from_its_own_start_and_the_pointer_to_the_next_is_none(trail: Trail) -> None:
    """A way through 1-1 by its pipe, found at random: ground grows with x in each room, and nothing is paid twice."""
    envs = MarioVectorEnv(1, "1-1", action_type="complex", autoreset_mode="disabled", frame_stack=1)
    _, info = envs.reset(seed=0)
    furthest: dict[tuple[int, int], int] = {}
    pointers: set[int] = set()
    for action in trail.actions():
        ram = envs.ram[0]
        pointers.add(int(ram[NEXT_POINTER]))
        room, x = (int(ram[AREA_TYPE]), int(ram[AREA_NUMBER])), int(info["x_pos"][0])
        first = furthest.setdefault(room, x)
        furthest[room] = max(first, x)
        _, _, terminated, _, info = envs.step(np.array([action]))
        if terminated[0]:
            break
        assert info["rooms_seen"][0] <= len(furthest) + 1
    assert len(furthest) == 2
    assert len(pointers) > 1
    assert info["rooms_seen"][0] == 2
    # All but the ground before the first places: 40 in the stage, and where the pipe lets out below.
    assert info["progress"][0] >= sum(furthest.values()) - 40 - 60
    envs.close()


def test_walking_towards_a_pipe_is_no_new_room() -> None:
    """On the way through 4-2 the pointer to the next room changes; the room, and what was covered of it, stay."""
    envs = MarioVectorEnv(32, "4-2", frame_stack=1, noop_max=30, ground="stood")
    dice = np.random.default_rng(0)
    _, info = envs.reset(seed=0)
    at_first = envs.ram[:, NEXT_POINTER].copy()
    changed = 0
    for _ in range(200):
        ram, before = envs.ram, info
        _, _, terminated, truncated, info = envs.step(dice.choice([3, 3, 4, 4, 4], envs.num_envs))
        playing = ~(terminated | truncated) & (info["steps"] > before["steps"])
        assert (info["rooms_seen"][playing] == 1).all()
        # Nobody covers more ground than he is away from the start, which he would if a room counted twice.
        assert (info["progress"] <= info["x_max"] - 40)[playing].all()
        changed += int((playing & (ram[:, NEXT_POINTER] != at_first)).sum())
    assert changed > 10
    envs.close()
