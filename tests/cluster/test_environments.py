"""Environments on hosts: the same bytes as in process, and hosts that die or hang."""

from __future__ import annotations

import math
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import psutil
import pytest

from tests.cluster.hosted import STAGES, VIEW, hosted, pids, started, stop
from warpzone.cluster.connection import Cluster, niceness
from warpzone.cluster.fleet import START_S
from warpzone.engine import Packer
from warpzone.envs.make import make_envs
from warpzone.errors import ConfigError

SAME = ("x_pos", "score", "stage_index", "end", "steps", "from_snapshot", "flag_get", "status", "dx")


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (3, 3, 84, 84), (40, 1, 84, 84), (7, 1, 26, 32)])
@pytest.mark.parametrize("threads", [1, 3])
def test_what_was_packed_comes_out_again(shape: tuple[int, ...], threads: int) -> None:
    packer = Packer(threads, math.prod(shape[1:]), shape[-1])
    array = np.random.default_rng(0).integers(0, 3, shape).astype(np.uint8)
    out = np.empty_like(array)
    packer.unpack(packer.pack(array), out)
    assert np.array_equal(array, out)
    with pytest.raises(ValueError, match="packed bytes"):
        packer.unpack(packer.pack(array), np.empty(array.size + 1, np.uint8))


def test_a_packer_for_frames_that_can_not_be_is_refused() -> None:
    for frame_size, width in ((0, 1), (10, 0), (10, 3), (10, 11)):
        with pytest.raises(ConfigError, match="in rows of its width"):
            Packer(1, frame_size, width)


def test_hosts_give_the_same_bytes_as_this_process(local: Cluster) -> None:
    n, steps, random = 12, 150, np.random.default_rng(1)
    here = make_envs(VIEW, n, STAGES, threads=1, seed=0, frame_stack=1, autoreset_mode="same_step")
    with hosted(local, hosts=3, each=4) as ([there], _):
        (a, _), (b, _) = here.reset(), there.reset()
        assert np.array_equal(a, b)
        ended = 0
        blob = here.snapshot(0)
        for step in range(steps):
            actions = random.integers(0, 7, n)
            here.send(actions)
            there.send(actions)
            if step == 20:
                # During a step, as the curriculum does.
                for envs in (here, there):
                    envs.set_stage_weights([0.2, 0.8])
                    envs.queue_start(5, blob)
            a, b = here.recv(), there.recv()
            for mine, theirs in zip(a[:4], b[:4], strict=True):
                assert mine.dtype == theirs.dtype
                assert np.array_equal(mine, theirs)
            for key in SAME:
                assert np.array_equal(a[4][key], b[4][key]), key
            for term, paid in a[4]["reward_terms"].items():
                assert np.array_equal(paid, b[4]["reward_terms"][term]), term
            done = np.flatnonzero(a[2] | a[3])
            ended += len(done)
            if len(done):
                assert np.array_equal(a[4]["final_obs"][done], b[4]["final_obs"][done])
                for key in SAME[:-1]:
                    assert np.array_equal(a[4]["final_info"][key][done], b[4]["final_info"][key][done]), key
        assert ended > 10
        assert any(a[4]["from_snapshot"]) or ended
        # Either resumes from what the other saved.
        saved = there.state_dict()
        assert saved["consoles"] == here.state_dict()["consoles"]
        here.step(np.zeros(n, np.int64))
        there.load_state_dict(saved)
        here.load_state_dict(saved)
        actions = random.integers(0, 7, n)
        there.send(actions)
        a, b = here.step(actions), there.recv()
        assert np.array_equal(a[0], b[0])
        assert np.array_equal(a[1], b[1])
        metrics = there.metrics()
        assert metrics["host_restarts"] == metrics["episodes_lost"] == 0
        assert 0 < metrics["bytes_per_decision"] < 1600
        assert len(metrics["hosts"]) == 3
        assert all(host["decisions_per_s"] > 0 for host in metrics["hosts"])
    here.close()


def test_a_host_that_dies_at_its_start_is_replaced(local: Cluster) -> None:
    killed = threading.Event()

    # Those of the test before may still be on their way out.
    others = started("ray::Host")

    def kill_the_first() -> None:
        while not killed.is_set():
            for process in list(started("ray::Host") - others)[:1]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                killed.set()
            time.sleep(0.002)

    killer = threading.Thread(target=kill_the_first, daemon=True)
    killer.start()
    try:
        with hosted(local, hosts=2, each=2) as ([envs], said):
            killer.join(60)
            envs.reset()
            envs.send(np.ones(4, np.int64))
            envs.recv()
            metrics = envs.metrics()
            assert metrics["host_restarts"] == len(said) == 1
    finally:
        killed.set()


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_host_is_replaced_and_its_episodes_are_dropped(
    local: Cluster, with_signal: signal.Signals
) -> None:
    # A busy machine may keep a healthy host waiting for seconds while its neighbour is started anew.
    timeout_s = 10.0
    with hosted(local, hosts=2, each=4, groups=2, timeout_s=timeout_s) as (groups, said):
        fleet = groups[0].fleet
        for envs in groups:
            envs.reset()
            envs.set_stage_weights([0.0, 1.0])
        for _ in range(5):
            for envs in groups:
                envs.send(np.ones(8, np.int64))
            for envs in groups:
                envs.recv()
        stop(pids(local, fleet)[1], with_signal)
        began = time.monotonic()
        for envs in groups:
            envs.send(np.ones(8, np.int64))
        results = [envs.recv() for envs in groups]
        took = time.monotonic() - began
        for observations, rewards, terminated, truncated, info in results:
            assert info["worker_lost"].tolist() == [False] * 4 + [True] * 4
            assert truncated[4:].all()
            assert not terminated[4:].any()
            assert not rewards[4:].any()
            assert (info["steps"][4:] == 0).all()
            assert (info["final_info"]["steps"][4:] > 0).all()
            assert not np.array_equal(observations[4:], info["final_obs"][4:])
            # The new host plays what the curriculum asked for.
            assert (info["stage_index"][4:] == 1).all()
        assert took < timeout_s + START_S
        for _ in range(3):
            for envs in groups:
                envs.send(np.ones(8, np.int64))
            for envs in groups:
                assert not envs.recv()[4]["worker_lost"].any()
        metrics = groups[0].metrics()
        assert metrics["host_restarts"] == 1
        assert metrics["episodes_lost"] == 8
        assert [host["restarts"] for host in metrics["hosts"]] == [0, 1]
        assert len(said) == 1
        assert "host 1" in said[0]


def test_hosts_give_way_to_others_no_more_than_the_learner_does(local: Cluster) -> None:
    """Ray would start its workers with a niceness of 15."""
    with hosted(local, hosts=1, each=2) as ([envs], _):
        assert [psutil.Process(pid).nice() for pid in pids(local, envs.fleet)] == [niceness()]
