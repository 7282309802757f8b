"""Arrays of observations: nothing that a caller holds is written to, and what nobody holds is used again."""

from __future__ import annotations

import gc
import importlib.util
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpzone.compat
from warpzone.compat.gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from warpzone.compat.vectors import MarioVector

STAGES = ["1-1", "1-2", "1-3", "2-2", "3-1", "4-4", "8-4"]


def vector(copy: bool = True, num_envs: int = 4, **options: Any) -> MarioVector:
    options |= {"actions": SIMPLE_MOVEMENT, "stages": STAGES, "threads": 2}
    return warpzone.compat.vector("SuperMarioBrosRandomStages-v0", num_envs, copy=copy, **options)


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_what_is_kept_never_changes_and_what_is_reused_shows_the_frame(mode: str, writable: bool) -> None:
    """Some arrays are kept whole, some as views, some are written to and dropped; against the one kept array."""
    ours = vector(autoreset_mode=mode, writable=writable)
    reference = vector(copy=False, autoreset_mode=mode)
    rng = np.random.default_rng(1)
    held: list[tuple[Any, np.ndarray]] = []
    keep: list[Callable[[np.ndarray], Any]] = [
        lambda frames: frames,
        lambda frames: frames[3],
        lambda frames: frames[:, ::2],
        lambda frames: frames.reshape(-1)[5:],
        memoryview,
    ]
    frames, _ = ours.reset(seed=4)
    assert np.array_equal(frames, reference.reset(seed=4)[0])
    seen, reused, ends = set(), 0, 0
    for step in range(500):
        if step % 20 == 0:
            actions = rng.choice([0, 1, 3, 4, 5, 6], size=4)
        fate = rng.integers(4)
        if fate == 0:
            part = keep[rng.integers(len(keep))](frames)
            held.append((part, np.array(part)))
        elif fate == 1 and writable:  # it is the caller's to write to
            frames[:] = rng.integers(256)
        elif fate == 2 and held:
            del held[rng.integers(len(held))]
        frames, _, done, _, _ = ours.step(actions)
        ends += int(done.sum())
        assert np.array_equal(frames, reference.step(actions)[0]), step
        assert frames.flags.writeable == writable
        reused += address(frames) in seen
        seen.add(address(frames))
        if step % 25 == 0 or step > 490:
            for part, before in held:
                assert np.array_equal(np.array(part), before), step
        if step == 250:
            mask = np.arange(4) % 2 == 0
            frames = ours.reset(options={"reset_mask": mask})[0]
            assert np.array_equal(frames, reference.reset(options={"reset_mask": mask})[0])
    assert ends
    assert len(held) > 20
    assert reused > 200


def test_all_observations_of_an_episode_can_be_kept() -> None:
    ours, reference = vector(num_envs=2), vector(num_envs=2, copy=False)
    kept, copies = [ours.reset(seed=0)[0]], [reference.reset(seed=0)[0].copy()]
    for _ in range(100):
        kept.append(ours.step([1, 3])[0])
        copies.append(reference.step([1, 3])[0].copy())
    assert len({address(frames) for frames in kept}) == len(kept)
    ours.close()
    del ours
    gc.collect()
    for frames, before in zip(kept, copies, strict=True):
        assert np.array_equal(frames, before)
    assert np.array_equal(pickle.loads(pickle.dumps(kept[50])), copies[50])


def test_a_plain_loop_uses_two_arrays_in_turn() -> None:
    ours = vector()
    ours.reset()
    used = []
    for _ in range(20):
        frames = ours.step([0] * 4)[0]
        used.append(address(frames))
    assert len(set(used)) == 2
    assert used[2:] == used[:-2]


def test_memory_is_given_back_after_the_vector_is_gone() -> None:
    ours = vector(num_envs=1)
    frames, _ = ours.reset(seed=0)
    many = [ours.step([1])[0] for _ in range(30)]  # more than are put aside
    before = frames.copy()
    del many
    ours.step([1])
    ours.close()
    del ours
    gc.collect()
    assert np.array_equal(frames, before)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("writable", [True, False])
def test_a_tensor_holds_its_array(writable: bool) -> None:
    import torch

    ours = vector(num_envs=2, writable=writable)
    frames, _ = ours.reset(seed=2)
    tensors, copies = [torch.from_numpy(frames)], [frames.copy()]
    for _ in range(60):
        frames = ours.step([1, 3])[0]
        if len(tensors) < 12:
            tensors.append(torch.from_numpy(frames)[1:])
            copies.append(frames[1:].copy())
    for tensor, before in zip(tensors, copies, strict=True):
        assert np.array_equal(tensor.numpy(), before)
