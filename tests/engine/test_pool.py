"""The engine's classes by themselves: settings they refuse, threads, memory that a step writes to."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warpzone import CheckpointError, ConfigError
from warpzone.engine import FIELDS, FramePacker, Machine, Packer, Pool
from warpzone.engine.rom import rom

SETTINGS: dict[str, Any] = {"stages": [(1, 1)], "actions": [0, 128]}


def targets(pool_size: int, shape: tuple[int, ...] = (4, 84, 84)) -> list[Any]:
    return [
        np.empty((pool_size, *shape), np.uint8),
        np.empty((len(FIELDS), pool_size), np.int32),
        np.empty(pool_size, np.bool_),
        np.empty(pool_size, np.bool_),
        np.empty((pool_size, *shape), np.uint8),
        np.empty((len(FIELDS), pool_size), np.int32),
    ]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"environments": 0}, "environments must be 1 to"),
        ({"environments": -3}, "environments must be 1 to"),
        ({"environments": 2.5}, "environments must be a whole number"),
        ({"threads": 0}, "threads must be 1 to"),
        ({"frame_stack": 0}, "frame_stack must be 1 to"),
        ({"frame_skip": 0}, "frame_skip must be 1 to"),
        ({"frame_skip_noise": 4}, "frame_skip_noise must be 0 to 3"),
        ({"height": 0}, "height must be 1 to"),
        ({"height": 220, "top": 32}, "height must be 1 to 208"),
        ({"width": 257}, "width must be 1 to 256"),
        ({"top": 240}, "top must be 0 to"),
        ({"sticky": float("nan")}, "sticky is a probability"),
        ({"noop_max": -1}, "noop_max must be 0 to"),
        ({"stall_limit": -1}, "stall_limit must be 0 to"),
        ({"autoreset": 3}, "autoreset must be 0 to 2"),
        ({"autoreset": 256}, "autoreset must be 0 to 2"),
        ({"stages": []}, "stages must hold at least one"),
        ({"stages": [(9, 9)]}, "There is no stage 9-9"),
        ({"actions": []}, "actions must hold"),
        ({"actions": [256]}, "each 0 to 255"),
        ({"channels": ""}, "channels must name"),
        ({"channels": "yx"}, "letters y, r, g and b"),
        ({"chanels": "y"}, "no setting 'chanels'"),
    ],
)
def test_a_pool_refuses_bad_settings_in_a_sentence(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Pool(rom(), **{**SETTINGS, **bad})


def test_a_pool_refuses_calls_that_do_not_fit() -> None:
    pool, to = Pool(rom(), environments=2, threads=2, **SETTINGS), targets(2)
    nothing = np.zeros(2, np.int64)
    with pytest.raises(ConfigError, match="Call reset"):
        pool.step(nothing, *to)
    pool.reset(None, None, None, *to)
    with pytest.raises(ConfigError, match="wrong size"):
        pool.step(nothing, *targets(3))
    with pytest.raises(ConfigError, match="There is no stage 99-1"):
        pool.add_stage(99, 1)
    for weights in ([], [0.0], [-1.0], [float("nan")], [float("inf")], [1.0, 1.0]):
        with pytest.raises(ConfigError):
            pool.set_stage_weights(weights)
    with pytest.raises(ConfigError, match="There is no environment 2 among 2"):
        pool.restore(2, b"")
    pool.send(nothing, *to)
    for call in (
        lambda: pool.add_stage(1, 2),
        lambda: pool.snapshot(0, 1),
        lambda: pool.screen(0),
        lambda: pool.step(nothing, *to),
        lambda: pool.copy_ram(np.empty(4096, np.uint8)),
    ):
        with pytest.raises(ConfigError, match="A step is under way"):
            call()
    pool.receive()


def test_send_keeps_the_arrays_that_its_threads_write_to() -> None:
    pool, to = Pool(rom(), environments=2, threads=2, **SETTINGS), targets(2)
    pool.reset(None, None, None, *to)
    seen = weakref.ref(to[0])
    pool.send(np.zeros(2, np.int64), *to)
    del to
    gc.collect()
    assert seen() is not None
    pool.receive()
    gc.collect()
    assert seen() is None


def test_a_pool_can_be_dropped_with_a_step_under_way() -> None:
    for _ in range(5):
        pool, to = Pool(rom(), environments=4, threads=2, **SETTINGS), targets(4)
        pool.reset(None, None, None, *to)
        pool.send(np.zeros(4, np.int64), *to)
        del pool, to


@pytest.mark.parametrize(("environments", "channels", "stack"), [(1, "y", 1), (20, "y", 1), (9, "rgb", 2)])
def test_observations_are_packed_as_they_are_drawn(environments: int, channels: str, stack: int) -> None:
    pool = Pool(
        rom(), environments=environments, threads=2, autoreset=1, channels=channels, frame_stack=stack,
        step_limit=7, **SETTINGS,
    )  # fmt: skip
    shape, random = (stack * len(channels), 84, 84), np.random.default_rng(0)
    to, out = targets(environments, shape), np.empty((environments, *shape), np.uint8)
    packer, whole = FramePacker(environments, out[0].size, 84), Packer(2, out[0].size, 84)
    with pytest.raises(RuntimeError, match="Not all of the frames"):
        packer.packed()
    pool.reset(None, None, None, *to, packer)
    for _ in range(20):
        whole.unpack(packer.packed(), out)
        assert np.array_equal(out, to[0])
        assert packer.packed() == whole.pack(to[0])
        pool.step(random.integers(0, 2, environments), *to, packer)
    with pytest.raises(ConfigError, match="The packer is for other frames"):
        pool.step(np.zeros(environments, np.int64), *to, FramePacker(environments + 1, out[0].size, 84))
    with pytest.raises(ConfigError, match="at least one frame"):
        FramePacker(0, 1, 1)


def test_a_snapshot_of_another_region_is_refused() -> None:
    made = [Pool(rom(), pal=pal, **SETTINGS) for pal in (False, True)]
    for pool in made:
        pool.reset(None, None, None, *targets(1))
    with pytest.raises(CheckpointError, match="another region"):
        made[0].restore(0, made[1].snapshot(0, 1))


def test_threads_that_the_system_refuses_are_named_every_time() -> None:
    """The first call raised and the second one waited for ever."""
    code = """
        import resource
        import numpy as np
        from tests.engine.test_pool import SETTINGS, targets
        from warpzone import ConfigError
        from warpzone.engine import Pool
        from warpzone.engine.rom import rom

        pool, to = Pool(rom(), environments=32, threads=32, pin=False, **SETTINGS), targets(32)
        with open("/proc/self/statm") as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20), before[1]))
        for _ in range(2):
            try:
                pool.reset(None, None, None, *to)
            except ConfigError as error:
                assert "use fewer threads" in str(error), error
            else:
                raise SystemExit("nothing was refused")
        resource.setrlimit(resource.RLIMIT_AS, before)
        pool.reset(None, None, None, *to)
        pool.step(np.zeros(32, np.int64), *to)
        print("plays")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "plays\n", done.stdout + done.stderr


def test_a_machine_is_used_by_one_thread_at_a_time() -> None:
    machine, alone, refused = Machine(rom()), Machine(rom()), []
    state = alone.save()

    def attempt(call: Callable[[], object]) -> None:
        try:
            call()
        except ConfigError as error:
            refused.append(str(error))

    def play() -> None:
        for _ in range(20):
            attempt(lambda: machine.step(0, 500, render=False))

    thread = threading.Thread(target=play)
    thread.start()
    while thread.is_alive():
        attempt(lambda: machine.load(state))
    assert set(refused) == {"Two threads use the machine at once: give each thread its own."}
    for console in (machine, alone):
        console.load(state)
        console.step(0, 500, render=False)
    assert machine.frame == alone.frame > 0
    assert machine.save() == alone.save()
