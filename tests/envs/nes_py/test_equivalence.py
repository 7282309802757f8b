"""The same buttons on the native engine and on nes-py: the same game, seen one frame later and in other colours.

nes-py ends its step inside the game's interrupt handler, before the frame's logic is through: what the engine shows
after frame k, nes-py shows after frame k + 1 (docs/backends.md).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone.engine import FIELDS
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.emulators import NesPyFactory
from warpzone.envs.nes_py.episode import EpisodeEnv, EpisodeSettings
from warpzone.envs.rewards import RewardArrays, RewardConfig, RewardShaper
from warpzone.envs.vector import MarioVectorEnv

pytest.importorskip("gym_super_mario_bros")
COUNTED_FROM_THE_START = ("steps", "frames")
"""One frame later is one more."""
SAMPLED_IN_MID_UPDATE = ("time",)
"""Its three digits are written one by one, where nes-py's step may end."""
FRAMES = 160
Screen = NDArray[np.uint8]


def buttons_played() -> list[int]:
    """Runs and jumps to the right with a few other actions, by number in the complex set."""
    rng = np.random.default_rng(0)
    held = [int(rng.choice([1, 3, 4, 2, 4, 3, 6, 5, 3])) for _ in range(FRAMES // 17 + 1)]
    return [held[t // 17] for t in range(FRAMES)]


@pytest.fixture(scope="module")
def played() -> dict[str, Any]:
    """Telemetry and screens of both after every frame, until Mario dies."""
    actions = buttons_played()
    native = MarioVectorEnv(
        1, "1-1", frame_skip=1, frame_stack=1, action_type="complex", autoreset_mode="disabled"
    )
    native.reset(seed=[1])
    told: dict[str, Any] = {"native": [], "nes_py": [], "native_screens": [], "nes_py_screens": []}
    for action in actions:
        _, _, terminated, _, info = native.step(np.array([action]))
        row = {name: info[name][0] for name in FIELDS}
        row["status"] = ("small", "tall", "fireball").index(row["status"])
        told["native"].append({name: int(value) for name, value in row.items()})
        told["native_screens"].append(native.screen(0).copy())
        if terminated[0]:
            break
    view = ViewConfig(frame_skip=1, frame_stack=1, action_type="complex")
    emulator = NesPyFactory("1-1")(lambda stage: None)
    episodes = EpisodeEnv(EpisodeSettings(view, ["1-1"], BackendConfig()), emulator)
    episodes.reset(seed=1)
    for action in [*actions, 0][: len(told["native"]) + 1]:
        *_, info = episodes.step(action)
        told["nes_py"].append(dict(zip(FIELDS, info["telemetry"].tolist(), strict=True)))
        told["nes_py_screens"].append(episodes.screen())
    episodes.close()
    return told


def test_telemetry_is_the_same_one_frame_later(played: dict[str, Any]) -> None:
    exact = [name for name in FIELDS if name not in COUNTED_FROM_THE_START + SAMPLED_IN_MID_UPDATE]
    for k, native in enumerate(played["native"]):
        nes_py = played["nes_py"][k + 1]
        assert {name: nes_py[name] for name in exact} == {name: native[name] for name in exact}, f"frame {k}"
        assert nes_py["steps"] == native["steps"] + 1


def test_the_clock_differs_only_while_it_is_being_written(played: dict[str, Any]) -> None:
    differing = [
        k for k, native in enumerate(played["native"]) if played["nes_py"][k + 1]["time"] != native["time"]
    ]
    assert len(differing) <= 0.15 * len(played["native"])
    for k in differing:
        around = [row["time"] for row in played["native"][max(0, k - 2) : k + 3]]
        assert len(set(around)) > 1 or abs(played["nes_py"][k + 1]["time"] - around[0]) <= 1


def test_the_episode_ends_the_same_way_one_frame_later(played: dict[str, Any]) -> None:
    assert played["native"][-1]["end"] == played["nes_py"][len(played["native"])]["end"] == 1


def test_rewards_are_the_same_one_frame_later(played: dict[str, Any]) -> None:
    def rewards(rows: list[dict[str, int]]) -> list[float]:
        shaper = RewardShaper(RewardConfig(reward_scale_start=1.0), 1)
        columns = [np.array([[row[name]] for name in FIELDS], np.int32) for row in rows]
        earned = []
        for before, after in pairwise(columns):
            out = RewardArrays(1)
            shaper.of_telemetry(before, after, np.array([False]), out)
            earned.append(float(out.total[0]))
        return earned

    native = rewards(played["native"])
    assert rewards(played["nes_py"][1 : len(played["native"]) + 1]) == native
    assert sum(native) > 0 or native[-1] == -50.0


def colours(screen: Screen) -> NDArray[np.int64]:
    wide = screen.astype(np.int64)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]


def palette_map(played: dict[str, Any]) -> dict[int, set[int]]:
    """Which of nes-py's colours stand where the engine has one, in the first frames."""
    mapped: dict[int, set[int]] = {}
    for k in range(5, 21, 5):
        ours, theirs = colours(played["native_screens"][k]), colours(played["nes_py_screens"][k + 1])
        for pair in np.unique(np.stack([ours.ravel(), theirs.ravel()]), axis=1).T:
            mapped.setdefault(int(pair[0]), set()).add(int(pair[1]))
    return mapped


def test_screens_are_the_same_but_for_the_palette_one_frame_later(played: dict[str, Any]) -> None:
    """Both palettes have a colour for each of the console's: pixel by pixel, one maps to the other."""
    mapped = palette_map(played)
    assert len(mapped) > 5
    assert all(len(values) == 1 for values in mapped.values())
    assert len(set.union(*mapped.values())) == len(mapped)


def test_what_differs_later_is_mid_stride_legs_and_colours_that_cycle(played: dict[str, Any]) -> None:
    """Both are drawn from another moment of the handler; never more than one pixel in fifty."""
    to_theirs = {ours: next(iter(theirs)) for ours, theirs in palette_map(played).items()}
    for k in range(0, len(played["native"]), 8):
        ours, theirs = colours(played["native_screens"][k]), colours(played["nes_py_screens"][k + 1])
        expected = np.full(ours.shape, -1)
        for colour, mapped in to_theirs.items():
            expected[ours == colour] = mapped
        assert (expected != theirs).mean() < 0.02, f"frame {k}"


def test_buttons_are_drawn_as_by_the_engine() -> None:
    view = ViewConfig(show_buttons=True, action_type="complex")
    emulator = NesPyFactory("1-1")(lambda stage: None)
    episodes = EpisodeEnv(EpisodeSettings(view, ["1-1"], BackendConfig()), emulator)
    native = MarioVectorEnv(1, "1-1", show_buttons=True, action_type="complex")
    rows, different = 84 // 16, set()
    ours, theirs = native.reset(seed=1)[0][0], episodes.reset(seed=1)[0]
    for action in range(view.num_actions):
        np.testing.assert_array_equal(theirs[:, :rows], ours[:, :rows])
        different.add(ours[-1, 0].tobytes())
        ours, theirs = native.step(np.array([action]))[0][0], episodes.step(action)[0]
    assert len(different) == view.num_actions - 1  # nothing is held at first, nor by the first action
    native.close()
    episodes.close()
