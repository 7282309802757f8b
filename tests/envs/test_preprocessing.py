"""The fused preprocessing gives the numbers of the plain one: colour, crop, maximum, area average, stack."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone.envs.nes_py.preprocessing import with_buttons
from warpzone.envs.vector import MarioVectorEnv

PRESSED = 0x6FC
ACTIONS = (3, 4, 4, 3, 1, 6, 2, 4, 4, 3)


def area_weights(source: int, target: int) -> NDArray[np.object_]:
    """How much of each of `source` cells lies in each of `target` cells, exactly."""
    weights = np.full((target, source), Fraction(0), dtype=object)
    for j in range(target):
        low, high = Fraction(j * source, target), Fraction((j + 1) * source, target)
        for i in range(int(low), source):
            overlap = min(high, Fraction(i + 1)) - max(low, Fraction(i))
            if overlap <= 0:
                break
            weights[j, i] = overlap
    return weights


def area_resize(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The mean of the area under every output pixel, rounded half up, in exact arithmetic."""
    rows, columns = area_weights(image.shape[0], height), area_weights(image.shape[1], width)
    scale_rows, scale_columns = height * image.shape[0], width * image.shape[1]
    whole_rows = (rows * scale_rows).astype(np.int64)
    whole_columns = (columns * scale_columns).astype(np.int64)
    sums = whole_rows @ image.astype(np.int64) @ whole_columns.T
    unit = whole_rows[0].sum() * whole_columns[0].sum()
    return ((2 * sums + unit) // (2 * unit)).astype(np.uint8)


def luma(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    r, g, b = (rgb[..., i].astype(np.int64) for i in range(3))
    return ((r * 4899 + g * 9617 + b * 1868 + 8192) >> 14).astype(np.uint8)


def channels(rgb: NDArray[np.uint8], observation: str) -> list[NDArray[np.uint8]]:
    if observation == "gray":
        return [luma(rgb)]
    return [rgb[..., 0]] if observation == "red" else [rgb[..., i] for i in range(3)]


@pytest.mark.parametrize(
    ("size", "observation", "crop"),
    [((84, 84), "gray", False), ((26, 32), "red", True), ((84, 84), "rgb", True), ((37, 101), "gray", False),
     ((120, 128), "red", False), ((240, 256), "gray", False), ((1, 1), "gray", False)],
)  # fmt: skip
def test_every_size_and_colour_matches_the_exact_area_average(
    size: tuple[int, int], observation: str, crop: bool
) -> None:
    envs = MarioVectorEnv(1, stage="1-1", size=size, observation=observation, crop_hud=crop, frame_stack=1)
    observations, _ = envs.reset(seed=0)
    for action in ACTIONS[:4]:
        screen = envs.screen(0)[32 if crop else 0 :]
        expected = [area_resize(plane, *size) for plane in channels(screen, observation)]
        np.testing.assert_array_equal(observations[0], np.stack(expected))
        observations, *_ = envs.step(np.array([action]))


def test_max_pool_takes_the_brighter_of_the_last_two_frames() -> None:
    pooled = MarioVectorEnv(1, stage="1-1", frame_stack=1, max_pool=True)
    single = MarioVectorEnv(1, stage="1-1", frame_stack=1, frame_skip=1)
    pooled.reset(seed=0)
    single.reset(seed=0)
    for action in ACTIONS:
        observations, *_ = pooled.step(np.array([action]))
        screens = []
        for _ in range(4):
            single.step(np.array([action]))
            screens.append(luma(single.screen(0)))
        expected = area_resize(np.maximum(screens[-1], screens[-2]), 84, 84)
        np.testing.assert_array_equal(observations[0, 0], expected)


@pytest.mark.parametrize(
    ("size", "observation"), [((84, 84), "gray"), ((26, 32), "red"), ((37, 101), "rgb"), ((1, 1), "gray")]
)
def test_the_buttons_that_were_held_are_drawn_over_the_top(size: tuple[int, int], observation: str) -> None:
    look: dict[str, Any] = {"size": size, "observation": observation, "action_type": "complex", "sticky": 0.5}
    shown = MarioVectorEnv(2, stage="1-1", show_buttons=True, **look)
    plain = MarioVectorEnv(2, stage="1-1", **look)
    frame_by_frame = MarioVectorEnv(2, stage="1-1", frame_skip=1, **look)
    seen, _ = shown.reset(seed=3)
    without, _ = plain.reset(seed=3)
    frame_by_frame.reset(seed=3)
    held = [[0, 0] for _ in range(4)]
    random, rows, blocks = np.random.default_rng(0), min(max(2, size[0] // 16), size[0]), set()
    for _ in range(60):
        expected = without.reshape(2, 4, -1, *size).copy()
        for env in range(2):
            for frame in range(4):
                for button in range(8):
                    columns = slice(button * size[1] // 8, (button + 1) * size[1] // 8)
                    expected[env, frame, :, :rows, columns] = 255 * (held[frame][env] >> 7 - button & 1)
        np.testing.assert_array_equal(seen, expected.reshape(seen.shape))
        held_by_name = [sum(1 << button for button in range(8) if h >> 7 - button & 1) for h in held[-1]]
        for env in range(2):
            newest = without.reshape(2, 4, -1, *size)[env, -1]
            drawn = with_buttons(newest, held_by_name[env])
            np.testing.assert_array_equal(drawn, expected[env, -1])
        actions = random.integers(0, 12, 2)
        seen, *_ = shown.step(actions)
        without, *_ = plain.step(actions)
        for _ in range(4):
            frame_by_frame.step(actions)
        # As the game read them from its controller in the last frame, A in the highest bit.
        held = [*held[1:], [int(ram[PRESSED]) for ram in frame_by_frame.ram]]
        blocks.update(held[-1])
    assert len(blocks) > 6
    for envs in (shown, plain, frame_by_frame):
        envs.close()


def test_a_decision_is_four_frames_with_the_action_held() -> None:
    skipping = MarioVectorEnv(1, stage="1-1")
    frame_by_frame = MarioVectorEnv(1, stage="1-1", frame_skip=1)
    skipping.reset(seed=0)
    frame_by_frame.reset(seed=0)
    for action in ACTIONS:
        _, rewards, *_ = skipping.step(np.array([action]))
        total = 0.0
        for _ in range(4):
            total += float(frame_by_frame.step(np.array([action]))[1][0])
        np.testing.assert_array_equal(skipping.ram, frame_by_frame.ram)
        assert rewards[0] == pytest.approx(total)


def test_stacks_are_those_of_a_frame_stack_wrapper_across_episodes() -> None:
    stacked = MarioVectorEnv(2, stage="1-1", size=(26, 32), autoreset_mode="same_step")
    newest = MarioVectorEnv(2, stage="1-1", size=(26, 32), frame_stack=1, autoreset_mode="same_step")
    observations, _ = stacked.reset(seed=0)
    picture, _ = newest.reset(seed=0)
    history = [[picture[i, 0].copy()] * 4 for i in range(2)]
    ends = 0
    for _ in range(90):
        np.testing.assert_array_equal(observations, np.array(history))
        actions = np.array([3, 4])
        observations, *_ = stacked.step(actions)
        picture, _, terminated, truncated, _ = newest.step(actions)
        for i in range(2):
            if terminated[i] or truncated[i]:
                ends += 1
                history[i] = [picture[i, 0].copy()] * 4
            else:
                history[i] = [*history[i][1:], picture[i, 0].copy()]
    assert ends > 0
