"""The native vector: what a step returns, when episodes begin again, and that nothing depends on threads or time."""

from __future__ import annotations

import gc
import hashlib
import os
import threading
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import warpzone
from warpzone.envs.stages import parse_stages, stage_span
from warpzone.envs.telemetry import ENDS
from warpzone.envs.vector import MarioVectorEnv

RIGHT_RUN = 3


def digest(envs: MarioVectorEnv, steps: int, seed: int = 0) -> str:
    """Everything that `steps` random steps return, as one hash."""
    rng = np.random.default_rng(seed)
    total = hashlib.sha256()
    observations, _ = envs.reset(seed=seed)
    for _ in range(steps):
        observations, rewards, terminated, truncated, info = envs.step(rng.integers(0, 7, envs.num_envs))
        for array in (observations, rewards, terminated, truncated, info["x_pos"], envs.ram):
            total.update(array.tobytes())
    return total.hexdigest()


def run_right(envs: MarioVectorEnv) -> tuple[int, dict[str, np.ndarray]]:
    """Hold right and B until the first episode ends; the number of steps and the info."""
    envs.reset(seed=0)
    for step in range(1, 400):
        *_, terminated, truncated, info = envs.step(np.full(envs.num_envs, RIGHT_RUN))
        if (terminated | truncated).any():
            return step, info
    pytest.fail("running right never ended an episode")


@pytest.mark.parametrize(
    "options",
    [{}, {"frame_skip_noise": 3, "sticky": 0.3, "noop_max": 20, "random_start": 0.5, "max_pool": True}],
)
def test_one_and_two_threads_give_the_same_bytes(options: dict[str, object]) -> None:
    digests = set()
    for threads in (1, 2):
        with_threads = MarioVectorEnv(6, stages=["1-1", "4-4", "2-2"], threads=threads, **options)  # type: ignore[arg-type]
        digests.add(digest(with_threads, 60))
        with_threads.close()
    assert len(digests) == 1


def test_frame_skip_noise_holds_actions_longer_and_shorter() -> None:
    noisy, plain = MarioVectorEnv(8, frame_skip=4, frame_skip_noise=2), MarioVectorEnv(1, frame_skip=1)
    noisy.reset(seed=3)
    plain.reset(seed=0)
    before, held = np.zeros(8, np.int64), []
    for _ in range(20):
        info = noisy.step(np.full(8, RIGHT_RUN))[4]
        held.append(info["frames"] - before)
        before = info["frames"].astype(np.int64)
    assert set(np.concatenate(held).tolist()) == {2, 3, 4, 5, 6}
    assert np.concatenate(held).mean() == pytest.approx(4, abs=0.4)
    # The same buttons for as many single frames lead to the same place.
    for _ in range(int(before[0])):
        plain.step(np.full(1, RIGHT_RUN))
    assert plain.ram[0].tobytes() == noisy.ram[0].tobytes()


def test_another_seed_gives_another_run() -> None:
    envs = MarioVectorEnv(4, stages="all", noop_max=30)
    assert digest(envs, 10, seed=1) != digest(envs, 10, seed=2)


def test_send_and_recv_are_the_two_halves_of_step() -> None:
    one, two = MarioVectorEnv(3, threads=2), MarioVectorEnv(3, threads=2)
    one.reset(seed=5)
    two.reset(seed=5)
    for action in range(7):
        whole = one.step(np.full(3, action))
        two.send(np.full(3, action))
        halves = two.recv()
        for a, b in zip(whole[:4], halves[:4], strict=True):
            np.testing.assert_array_equal(a, b)


def test_arrays_that_are_held_do_not_change() -> None:
    envs = MarioVectorEnv(2)
    held = [envs.reset(seed=0)[0]]
    copies = [held[0].copy()]
    for _ in range(12):
        held.append(envs.step(np.full(2, RIGHT_RUN))[0])
        copies.append(held[-1].copy())
    for kept, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(kept, copy)


def test_memory_is_used_again_once_it_is_let_go() -> None:
    envs = MarioVectorEnv(2)
    envs.reset(seed=0)
    addresses = {envs.step(np.full(2, RIGHT_RUN))[0].ctypes.data for _ in range(50)}
    assert len(addresses) <= 3


def test_the_first_goomba_ends_the_episode_by_death_and_the_next_step_begins_a_new_one() -> None:
    envs = MarioVectorEnv(1, stage="1-1")
    step, info = run_right(envs)
    assert ENDS[int(info["end"][0])] == "death"
    assert 20 < step < 60
    assert 250 < info["x_pos"][0] < 400
    _, reward, terminated, truncated, info = envs.step(np.array([RIGHT_RUN]))
    assert reward[0] == 0
    assert not terminated[0]
    assert not truncated[0]
    assert info["x_pos"][0] == 40
    assert info["steps"][0] == 0


def test_same_step_hands_out_the_end_and_the_new_beginning_together() -> None:
    envs = MarioVectorEnv(2, stage="1-1", autoreset_mode="same_step")
    _, info = run_right(envs)
    assert info["final_info"]["x_pos"][0] > 250
    assert info["x_pos"][0] == 40
    plain = MarioVectorEnv(2, stage="1-1")
    run_right(plain)
    np.testing.assert_array_equal(info["final_obs"][0], plain.observe(0))


def test_without_autoreset_a_finished_environment_refuses_to_step_until_it_is_reset() -> None:
    envs = MarioVectorEnv(2, stage="1-1", autoreset_mode="disabled")
    run_right(envs)
    with pytest.raises(warpzone.Error, match="Environment 0: its episode is over"):
        envs.step(np.zeros(2, np.int64))
    _, info = envs.reset(options={"reset_mask": np.array([True, False])})
    assert info["x_pos"][0] == 40
    assert info["x_pos"][1] > 250


def test_a_snapshot_goes_on_to_the_same_bits() -> None:
    envs = MarioVectorEnv(2, stage="1-1", sticky=0.2)
    envs.reset(seed=3)
    for _ in range(10):
        envs.step(np.full(2, RIGHT_RUN))
    blob = envs.snapshot(0)
    first = [envs.step(np.full(2, 4)) for _ in range(8)]
    envs.restore(1, blob)
    for expected in first:
        observations, rewards, *_ = envs.step(np.full(2, 4))
        np.testing.assert_array_equal(observations[1], expected[0][0])
        assert rewards[1] == expected[1][0]


def test_a_queued_snapshot_is_where_the_next_episode_begins() -> None:
    envs = MarioVectorEnv(1, stage="1-1", autoreset_mode="same_step")
    envs.reset(seed=0)
    for _ in range(15):
        envs.step(np.array([RIGHT_RUN]))
    x = envs.ram[0, 0x86]
    envs.queue_start(0, envs.snapshot(0, whole_stack=False))
    for _ in range(60):
        _, _, terminated, _, info = envs.step(np.array([RIGHT_RUN]))
        if terminated[0]:
            break
    assert info["from_snapshot"][0] == 1
    assert info["x_pos"][0] == x


def test_the_screen_is_what_the_observation_was_made_of() -> None:
    envs = MarioVectorEnv(1, stage="1-1", size=(240, 256), frame_stack=1, observation="rgb", noop_max=7)
    observations, _ = envs.reset(seed=2)
    for action in (3, 4, 4, 1):
        np.testing.assert_array_equal(observations[0].transpose(1, 2, 0), envs.screen(0))
        observations, *_ = envs.step(np.array([action]))


def test_every_stage_begins_where_it_should() -> None:
    envs = MarioVectorEnv(32, stages="all")
    for index, name in enumerate(envs.stage_names):
        envs.set_stage(name)
        _, info = envs.reset(options={"reset_mask": np.arange(32) == index} if index else None)
        assert f"{info['world'][index]}-{info['stage'][index]}" == name
        assert info["time"][index] in (300, 400)


def test_the_lost_levels_start_from_their_own_rom() -> None:
    envs = MarioVectorEnv(1, stage="1-2", lost_levels=True)
    _, info = envs.reset()
    assert (info["world"][0], info["stage"][0]) == (1, 2)


def test_many_python_threads_may_have_vectors_of_their_own() -> None:
    digests: list[str] = []

    def live() -> None:
        for _ in range(3):
            envs = MarioVectorEnv(4, threads=2)
            digests.append(digest(envs, 5))
            envs.close()

    crowd = [threading.Thread(target=live) for _ in range(4)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(60)
    assert len(digests) == 12
    assert len(set(digests)) == 1


def test_lives_leave_no_thread_behind() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/task"))
    for _ in range(100):
        envs = MarioVectorEnv(2, threads=2, size=20, frame_stack=1)
        envs.reset()
        envs.step(np.zeros(2, np.int64))
        envs.close()
    # The system may list a thread for a moment after it was joined.
    deadline = time.monotonic() + 60
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) <= before


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_only_a_team_that_has_most_of_the_cores_but_not_all_keeps_each_thread_on_one() -> None:
    """Several runs with a few threads each would else crowd on some cores and leave others idle. Where no core is left
    for the caller, the threads only keep off the one that it is on."""
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        pytest.skip("one core")

    def allowed(threads: int, alone: int = 0) -> list[int]:
        """On how many cores each thread may run, once so many are kept on one."""
        before = set(os.listdir("/proc/self/task"))
        envs = MarioVectorEnv(2 * threads, threads=threads, size=20, frame_stack=1)
        envs.reset()
        found: list[int] = []
        steps, deadline = 0, time.monotonic() + 60
        # Threads may be late for the first steps.
        while steps < 50 or (found.count(1) != alone and time.monotonic() < deadline):
            envs.step(np.zeros(envs.num_envs, np.int64))
            new = set(os.listdir("/proc/self/task")) - before
            found = [len(os.sched_getaffinity(int(task))) for task in new]
            steps += 1
        envs.close()
        return found

    assert set(allowed(cores // 2)) <= {cores}
    assert set(allowed(cores)) <= {cores, cores - 1}
    if cores > 2:
        assert allowed(cores - 1, alone=cores - 1).count(1) == cores - 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_a_team_of_all_cores_keeps_off_the_one_that_the_caller_is_on() -> None:
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("one core")

    def mine() -> int:
        return int(Path(f"/proc/self/task/{threading.get_native_id()}/stat").read_text().split()[38])

    before = set(os.listdir("/proc/self/task"))
    envs = MarioVectorEnv(2 * len(cores), threads=len(cores), size=20, frame_stack=1)
    envs.reset()
    left = []
    for _ in range(200):
        core = mine()
        envs.step(np.zeros(envs.num_envs, np.int64))
        new = set(os.listdir("/proc/self/task")) - before
        free = [cores - os.sched_getaffinity(int(task)) for task in new]
        if core == mine():  # else nobody knows which it was when the step began
            left += [found for found in free if found]
            assert all(found in (set(), {core}) for found in free)
    envs.close()
    assert left


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_go_on() -> None:
    envs = MarioVectorEnv(4, threads=2)
    expected = digest(envs, 3)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if digest(envs, 3) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert digest(envs, 3) == expected


def test_gymnasium_accepts_the_single_environment() -> None:
    env = gym.make("warpzone/SuperMarioBros-v0", stage="1-1", render_mode="rgb_array")
    check_env(env.unwrapped)
    assert env.reset(seed=0)[0].shape == (4, 84, 84)
    assert env.render().shape == (240, 256, 3)  # type: ignore[union-attr]


def test_make_vec_gives_the_native_vector() -> None:
    envs = gym.make_vec("warpzone/SuperMarioBros-v0", num_envs=3, stage="1-2")
    assert isinstance(envs, MarioVectorEnv)
    assert envs.num_envs == 3


def test_an_action_that_does_not_exist_is_refused_with_its_environment() -> None:
    envs = MarioVectorEnv(2)
    envs.reset(seed=0)
    with pytest.raises(warpzone.Error, match="Environment 1: action 99"):
        envs.step(np.array([0, 99]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"stage": "9-1"}, "no stage"),
        ({"stage": 1}, "no stage 1:"),
        ({"stage": "²"}, "no stage"),
        ({"stages": ["1-1", 2]}, "no stage 2:"),
        ({"stages": 5}, "list of names"),
        ({"seed": "x"}, "one whole seed"),
        ({"seed": 1.5}, "one whole seed"),
        ({"stage": "1-1", "stages": ["1-2"]}, "either"),
        ({"size": 0}, "height"),
        ({"size": (84, 300)}, "width"),
        ({"size": "big"}, "size"),
        ({"threads": -1}, "threads"),
        ({"frame_skip": 0}, "frame_skip"),
        ({"sticky": 2.0}, "sticky"),
        ({"action_type": "all"}, "action set"),
        ({"observation": "sound"}, "observation"),
        ({"autoreset_mode": "never"}, "autoreset"),
        ({"region": "mars"}, "region"),
        ({"rom": "/nowhere/game.nes"}, "no ROM"),
        ({"rom": b""}, "empty"),
        ({"rom": b"NES\x1a" + bytes(12)}, "program banks"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(warpzone.Error, match=message) as error:
        MarioVectorEnv(**options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_stages_are_named_one_way_however_they_are_written() -> None:
    assert parse_stages(" 01-1 ,1-1,02") == ["1-1", "2-1", "2-2", "2-3", "2-4"]
    assert stage_span("01-4", 2) == ["1-4", "2-1"]


def test_bad_calls_are_refused_in_one_sentence() -> None:
    envs = MarioVectorEnv(2)
    with pytest.raises(warpzone.Error, match="Call reset"):
        envs.step(np.zeros(2, np.int64))
    envs.reset()
    for actions, message in ((np.zeros(3, np.int64), "one action"), (np.zeros(2), "whole numbers")):
        with pytest.raises(warpzone.Error, match=message):
            envs.step(actions)
    for seed in (1.5, "xy", [1], [1, "x"]):
        with pytest.raises(warpzone.Error, match="one whole seed"):
            envs.reset(seed=seed)  # type: ignore[arg-type]
    with pytest.raises(warpzone.Error, match="nothing to receive"):
        envs.recv()
    with pytest.raises(warpzone.Error, match="not a Warpzone snapshot"):
        envs.restore(0, bytes(100_000))
    with pytest.raises(warpzone.Error, match="cut short"):
        envs.restore(0, b"x")
    damaged = bytearray(envs.snapshot(0))
    damaged[500] ^= 1
    with pytest.raises(warpzone.Error, match="checksum"):
        envs.restore(0, bytes(damaged))
    envs.close()
    with pytest.raises(warpzone.Error, match="closed"):
        envs.step(np.zeros(2, np.int64))


def test_the_step_after_a_restore_is_rewarded_although_the_episode_before_was_over() -> None:
    envs = MarioVectorEnv(1, stage="1-1")
    envs.reset(seed=0)
    for _ in range(10):
        envs.step(np.array([RIGHT_RUN]))
    blob = envs.snapshot(0)
    _, expected, *_ = envs.step(np.array([RIGHT_RUN]))
    assert expected[0] > 0
    while not envs.step(np.array([RIGHT_RUN]))[2][0]:
        pass
    over = envs.snapshot(0)
    envs.restore(0, blob)
    assert envs.step(np.array([RIGHT_RUN]))[1] == expected
    envs.restore(0, over)
    _, rewards, _, _, info = envs.step(np.array([RIGHT_RUN]))
    assert (info["steps"][0], rewards[0]) == (0, 0.0)  # this step only begins the next episode
