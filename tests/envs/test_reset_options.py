"""`reset(options=...)`: stages, snapshots and masks; and vectors in hands that they were not made for."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import warpzone
from warpzone.envs.rewards import NES_PY_REWARD


def vector(count: int = 3, **options: object) -> warpzone.MarioVectorEnv:
    return warpzone.MarioVectorEnv(count, **{"stage": "1-1", "threads": 2, **options})  # type: ignore[arg-type]


def test_a_stage_of_the_options_holds_for_later_episodes_too() -> None:
    envs = vector(stages=["1-1", "3-1"], stage=None, step_limit=2)
    _, info = envs.reset(seed=0, options={"stage": "3-1"})
    assert info["world"].tolist() == [3, 3, 3]
    for _ in range(6):
        *_, info = envs.step(np.zeros(3, np.int64))
    assert info["world"].tolist() == [3, 3, 3]
    envs.close()


def test_a_snapshot_of_the_options_begins_every_episode_there() -> None:
    envs = vector()
    envs.reset(seed=0)
    for _ in range(12):
        *_, info = envs.step(np.full(3, 3))
    x, blob = int(info["x_pos"][1]), envs.snapshot(1)
    for _ in range(5):
        envs.step(np.full(3, 6))
    observations, info = envs.reset(options={"snapshot": blob})
    assert info["x_pos"].tolist() == [x] * 3
    assert info["from_snapshot"].tolist() == [1] * 3
    assert info["steps"].tolist() == [0] * 3
    assert np.array_equal(observations[0], observations[2])
    envs.close()


def test_a_mask_resets_only_those_it_names() -> None:
    envs = vector()
    envs.reset(seed=0)
    for _ in range(10):
        before, _, _, _, told = envs.step(np.full(3, 3))
    start = int(envs.reset(options={"reset_mask": [False, True, False]})[1]["x_pos"][1])
    after, info = envs.reset(options={"reset_mask": [False, False, False]})
    assert info["x_pos"].tolist() == [told["x_pos"][0], start, told["x_pos"][2]]
    assert start < told["x_pos"][0]
    assert np.array_equal(after[[0, 2]], before[[0, 2]])
    assert info["steps"].tolist() == [10, 0, 10]
    envs.close()


def test_an_episode_that_begins_by_itself_behind_a_masked_reset_earns_nothing() -> None:
    envs = vector(2, reward=NES_PY_REWARD, step_limit=3)
    envs.reset(seed=0)
    for _ in range(3):
        _, _, _, truncated, _ = envs.step(np.array([1, 1]))
    assert truncated.all()
    envs.reset(options={"reset_mask": [False, True]})
    _, rewards, _, _, info = envs.step(np.array([1, 0]))
    assert info["steps"].tolist() == [0, 1]
    assert rewards[0] == 0.0
    assert all(term[0] == 0.0 for term in info["reward_terms"].values())
    envs.close()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"stage": "9-9"}, warpzone.ConfigError, "no stage '9-9'"),
        ({"snapshot": b"nonsense"}, warpzone.CheckpointError, "snapshot is cut short"),
        ({"reset_mask": [True]}, warpzone.ConfigError, "one entry for each of the 3"),
        ({"speed": 3}, warpzone.ConfigError, "Unknown reset option 'speed'"),
    ],
)
def test_bad_options_are_refused_and_the_vector_goes_on(
    options: dict[str, object], error: type[Exception], words: str
) -> None:
    envs = vector()
    envs.reset(seed=0)
    with pytest.raises(error, match=words):
        envs.reset(options=options)
    envs.reset(seed=0)
    envs.step(np.zeros(3, np.int64))
    envs.close()


def test_a_damaged_start_is_the_same_error_wherever_it_is_met() -> None:
    envs = vector(1, step_limit=2, autoreset_mode="same_step")
    envs.reset(seed=0)
    damaged = bytearray(envs.snapshot(0))
    damaged[500] ^= 1
    with pytest.raises(warpzone.CheckpointError, match="checksum"):
        envs.restore(0, bytes(damaged))
    with pytest.raises(warpzone.CheckpointError, match=r"Environment 0: .*checksum"):
        envs.reset(options={"snapshot": bytes(damaged)})
    for step in (envs.step, lambda actions: (envs.send(actions), envs.recv())):
        envs.reset(seed=0)
        envs.queue_start(0, bytes(damaged))
        envs.step(np.zeros(1, np.int64))
        with pytest.raises(warpzone.CheckpointError, match=r"Environment 0: .*checksum"):
            step(np.zeros(1, np.int64))
    envs.close()


def test_calls_out_of_order_are_refused_in_a_sentence() -> None:
    envs = vector()
    actions = np.zeros(3, np.int64)
    with pytest.raises(warpzone.ConfigError, match="Call reset before"):
        envs.step(actions)
    with pytest.raises(warpzone.ConfigError, match="leave out reset_mask"):
        envs.reset(options={"reset_mask": [True, False, False]})
    envs.reset(seed=0)
    with pytest.raises(warpzone.ConfigError, match="nothing to receive"):
        envs.recv()
    envs.send(actions)
    for call in (
        lambda: envs.send(actions),
        lambda: envs.step(actions),
        envs.reset,
        lambda: envs.snapshot(0),
    ):
        with pytest.raises(warpzone.ConfigError, match="under way"):
            call()
    envs.recv()
    envs.close()
    with pytest.raises(warpzone.ConfigError, match="closed"):
        envs.step(actions)


def test_a_vector_can_be_closed_while_a_step_is_under_way() -> None:
    for _ in range(20):
        envs = vector(8)
        envs.reset(seed=0)
        envs.send(np.ones(8, np.int64))
        envs.close()
        envs.close()


def test_a_second_thread_is_refused_and_the_first_goes_on() -> None:
    envs = vector(64)
    envs.reset(seed=0)
    stop, refused = threading.Event(), []

    def disturb() -> None:
        while not stop.is_set():
            try:
                envs.step(np.zeros(64, np.int64))
            except warpzone.ConfigError as error:
                refused.append(str(error))

    other = threading.Thread(target=disturb)
    other.start()
    stepped = 0
    while stepped < 50:
        try:
            envs.step(np.ones(64, np.int64))
            stepped += 1
        except warpzone.ConfigError as error:
            refused.append(str(error))
    stop.set()
    other.join()
    assert set(refused) <= {"Two threads use the environments at once: give each thread its own."}
    envs.step(np.ones(64, np.int64))
    envs.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_during_a_step_is_told_and_does_not_hang() -> None:
    envs = vector(4)
    envs.reset(seed=0)
    envs.send(np.ones(4, np.int64))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            envs.recv()
        except warpzone.ConfigError as error:
            if "forked" in str(error):
                envs.reset(seed=0)
                envs.step(np.ones(4, np.int64))
                envs.close()
                status = 0
        os._exit(status)
    envs.recv()
    _, status = os.waitpid(child, 0)
    assert status == 0
    envs.close()


def test_a_restored_episode_has_the_index_of_its_stage_in_this_vector() -> None:
    two = warpzone.MarioVectorEnv(1, stages=["1-1", "2-3"], frame_stack=1, size=8)
    two.set_stage_weights([0.0, 1.0])
    two.reset(seed=0)
    blob = two.snapshot(0)
    one = warpzone.MarioVectorEnv(1, stages=["2-3"], frame_stack=1, size=8, autoreset_mode="disabled")
    one.reset(seed=0)
    one.restore(0, blob)
    *_, info = one.step(np.array([0]))
    assert (int(info["world"][0]), int(info["stage_index"][0])) == (2, 0)


def test_a_snapshot_of_a_stage_that_the_vector_does_not_have_is_refused_and_changes_nothing() -> None:
    other = warpzone.MarioVectorEnv(2, stage="2-3", frame_stack=1, size=8)
    other.reset(seed=0)
    envs = warpzone.MarioVectorEnv(2, stage="1-1", frame_stack=1, size=8)
    envs.reset(seed=0)
    before = envs.ram
    sentence = "The snapshot is of stage 2-3, which these environments do not have: add it to their stages"
    with pytest.raises(warpzone.CheckpointError, match=sentence):
        envs.restore(0, other.snapshot(0))
    mixed = {**envs.state_dict(), "consoles": [envs.snapshot(1), other.snapshot(1)]}
    with pytest.raises(warpzone.CheckpointError, match=sentence):
        envs.load_state_dict(mixed)
    np.testing.assert_array_equal(envs.ram, before)
    with pytest.raises(warpzone.CheckpointError, match=sentence):
        envs.reset(options={"snapshot": other.snapshot(0)})
