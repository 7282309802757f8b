"""The native vector against as many single environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import warpzone.compat
from warpzone.compat.gym_super_mario_bros import SuperMarioBrosEnv, SuperMarioBrosRandomStagesEnv
from warpzone.compat.gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from warpzone.errors import ConfigError

BYTES = (0, 128, 129, 130, 131, 1, 64)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_each_is_a_single_environment(mode: AutoresetMode) -> None:
    vector = warpzone.compat.vector(
        "SuperMarioBros-1-1-v0", num_envs=3, actions=SIMPLE_MOVEMENT, threads=2, autoreset_mode=mode
    )
    frames, _ = vector.reset(seed=0)
    singles = [SuperMarioBrosEnv(target=(1, 1)) for _ in range(3)]
    for frame, single in zip(frames, singles, strict=True):
        assert np.array_equal(frame, single.reset())
    rng = np.random.default_rng(2)
    over, ends = [False] * 3, 0
    for step in range(500):
        if step % 30 == 0:
            actions = rng.choice([3, 4], size=3)
        frames, rewards, dones, truncated, infos = vector.step(actions)
        ram = vector.ram
        assert not truncated.any()
        for i, single in enumerate(singles):
            if over[i] and mode == AutoresetMode.NEXT_STEP:
                frame, reward, done = single.reset(), 0.0, False
            else:
                frame, reward, done, info = single.step(BYTES[actions[i]])
                said = infos["final_info"] if done and mode == AutoresetMode.SAME_STEP else infos
                assert {key: said[key][i] for key in info} == info, step
            assert (rewards[i], dones[i]) == (reward, done), step
            ends += done
            if done and mode == AutoresetMode.SAME_STEP:
                assert np.array_equal(infos["final_obs"][i], frame)
                frame = single.reset()
            assert np.array_equal(frames[i], frame), step
            assert np.array_equal(ram[i], single.ram), step
            over[i] = done
    assert ends


def test_random_stages_are_drawn_as_the_single_one_draws_them() -> None:
    vector = warpzone.compat.vector("SuperMarioBrosRandomStages-v0", num_envs=2)
    single = SuperMarioBrosRandomStagesEnv()
    frames, infos = vector.reset(seed=[11, 12])
    assert np.array_equal(single.reset(seed=12), frames[1])
    assert single.step(0)[3]["world"] == infos["world"][1]


def test_a_reset_takes_stages_and_seeds_as_the_single_one_does() -> None:
    vector = warpzone.compat.vector("SuperMarioBrosRandomStages-v0", num_envs=3, autoreset_mode="same_step")
    drawn = [vector.reset(seed=seed)[1]["world"].tolist() for seed in (5, np.int64(5), np.array([5, 6, 7]))]
    assert drawn[0] == drawn[1] == drawn[2]
    _, infos = vector.reset(options={"stages": ["4-2"]})
    assert infos["world"].tolist() == [4] * 3
    assert infos["stage"].tolist() == [2] * 3


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_kept_array_shows_what_a_new_one_would(mode: AutoresetMode) -> None:
    """Only what has changed is written to it: on stages of every kind, standing, running and dying."""
    stages = ["1-1", "1-2", "1-3", "2-2", "3-1", "4-4", "8-4"]
    painted, kept, turns = (
        warpzone.compat.vector(
            "SuperMarioBrosRandomStages-v0", 8, actions=SIMPLE_MOVEMENT, stages=stages, threads=2,
            autoreset_mode=mode, **options,
        )
        for options in ({"writable": True}, {"copy": False}, {})
    )  # fmt: skip
    whole = painted.reset(seed=3)[0]
    assert np.array_equal(whole, kept.reset(seed=3)[0])
    assert np.array_equal(whole, turns.reset(seed=3)[0])
    rng = np.random.default_rng(5)
    changed, ends = 0, 0
    for step in range(600):
        if step % 20 == 0:
            actions = rng.choice([0, 1, 3, 4, 5, 6], size=8)
        before = painted._frames
        whole, _, done, _, _ = painted.step(actions)
        assert np.array_equal(whole, kept.step(actions)[0]), step
        assert np.array_equal(whole, turns.step(actions)[0]), step
        changed += not np.array_equal(before, whole)
        ends += int(done.sum())
        if step == 300:  # some begin anew while the others stand
            mask = np.arange(8) % 2 == 0
            again = painted.reset(options={"reset_mask": mask})[0]
            assert np.array_equal(again, kept.reset(options={"reset_mask": mask})[0])
            assert np.array_equal(again, turns.reset(options={"reset_mask": mask})[0])
    assert ends > 3
    assert changed > 300


@pytest.mark.parametrize("copy", [True, False])
def test_arrays_cannot_be_written_to_unless_that_is_asked_for(copy: bool) -> None:
    frames, _ = warpzone.compat.vector("SuperMarioBros-1-1-v0", 1, copy=copy).reset()
    with pytest.raises(ValueError, match="read-only"):
        frames[:] = 0
    frames, _ = warpzone.compat.vector("SuperMarioBros-1-1-v0", 1, writable=True).reset()
    frames[:] = 0
    assert not frames.any()


def test_an_array_that_is_not_the_vectors_own_is_refused() -> None:
    vector = warpzone.compat.vector("SuperMarioBros-1-1-v0", 1)
    vector.reset()
    with pytest.raises(ValueError, match="one of `frames`"):
        vector._engine().step(bytes(1), np.zeros((1, 240, 256, 3), np.uint8))


def test_without_copies() -> None:
    vector = warpzone.compat.vector("SuperMarioBros-v0", num_envs=2, copy=False)
    frames, _ = vector.reset()
    assert vector.step(np.array([128, 0]))[0] is frames


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "SuperMarioBros-9-1-v0"}, "There is no environment"),
        ({"copy": False, "writable": True}, "never writable"),
        ({"num_envs": 0}, "num_envs"),
        ({"threads": -1}, "threads"),
        ({"threads": "2"}, "threads"),
        ({"stages": ["1-1"]}, "stages are for"),
        # The fifth stage of world 1 would be the first of world 2.
        ({"id": "SuperMarioBrosRandomStages-v0", "stages": ["1-5"]}, "list of names"),
        ({"id": "SuperMarioBrosRandomStages-v0", "stages": "1-1"}, "list of names"),
        ({"render_mode": "human"}, "render mode"),
        ({"autoreset_mode": "never"}, "autoreset mode"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        warpzone.compat.vector(**{"id": "SuperMarioBros-1-1-v0", "num_envs": 1, **arguments})


def test_bad_calls() -> None:
    vector = warpzone.compat.vector("SuperMarioBros-1-1-v0", num_envs=2, actions=SIMPLE_MOVEMENT)
    with pytest.raises(gymnasium.error.ResetNeeded):
        vector.step([0, 0])
    vector.reset()
    for actions in ([0], [0, 7], [-1, 0], [0.5, 0], "ab"):
        with pytest.raises(ConfigError):
            vector.step(actions)
    with pytest.raises(ConfigError, match="one seed"):
        vector.reset(seed=[1])
    vector.close()
    vector.close()
    for call in (vector.reset, lambda: vector.step([0, 0]), lambda: vector.ram):
        with pytest.raises(ValueError, match="already been closed"):
            call()


@pytest.mark.parametrize("writable", [True, False])
def test_each_step_gives_an_array_of_its_own(writable: bool) -> None:
    id = "SuperMarioBros-1-1-v0"
    copies = warpzone.compat.vector(id, num_envs=2, writable=writable)
    shared = warpzone.compat.vector(id, num_envs=2, copy=False)
    before, _ = copies.reset()
    kept = before.copy()
    same, _ = shared.reset()
    for _ in range(5):
        frames, shared_frames = copies.step([128, 64])[0], shared.step([128, 64])[0]
        assert shared_frames is same
        assert np.array_equal(frames, same)
        assert np.array_equal(before, kept)
        kept, before = frames.copy(), frames
    if writable:
        before[:] = 0  # what is done to it is not seen later, nor after a reset of others
    again, _ = copies.reset(options={"reset_mask": np.array([True, False])})
    assert np.array_equal(again[1], before[1])
    assert np.array_equal(copies.step([128, 64])[0][1], shared.step([128, 64])[0][1])


def test_without_autoreset_a_step_after_the_end_is_refused_and_changes_nothing() -> None:
    vector = warpzone.compat.vector(
        "SuperMarioBros-1-1-v0", num_envs=2, autoreset_mode=AutoresetMode.DISABLED
    )
    vector.reset()
    for _ in range(3000):
        frames, _, done, _, _ = vector.step([130, 0])
        if done.any():
            break
    assert done.tolist() == [True, False]
    with pytest.raises(ValueError, match="cannot step in a done environment"):
        vector.step([0, 0])
    again, _ = vector.reset(options={"reset_mask": done})
    assert np.array_equal(again[1], frames[1])
    vector.step([0, 0])
