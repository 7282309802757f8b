"""Levels in the engine: played like stages, each environment its own, from one ROM image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpzone
from warpzone import MarioVectorEnv, levels
from warpzone.engine import FIELDS, Pool
from warpzone.envs.stages import ALL_STAGES
from warpzone.envs.telemetry import ENDS
from warpzone.errors import ConfigError
from warpzone.levels import Enemy, EnemyKind, Level, Object, ObjectKind
from warpzone.levels.image import level_image, level_memory, stage_memory
from warpzone.levels.kinds import LAYOUTS, AreaType, Family
from warpzone.levels.tables import tables

POINTERS = [0xE7, 0xE8, 0xE9, 0xEA]
"""Where the game keeps the addresses of the area's bytes."""
RIGHT, JUMP = 1, 2
FLAG_SOON = Level([Object(ObjectKind.FLAGPOLE, 20), Object(ObjectKind.CASTLE, 24)], name="flag soon")
NO_CASTLE = Level([Object(ObjectKind.FLAGPOLE, 20)])
HOLE_SOON = Level([Object(ObjectKind.HOLE, 8, size=6), Object(ObjectKind.FLAGPOLE, 40)], name="hole soon")


@pytest.fixture(scope="module")
def rom() -> bytes:
    return warpzone.rom()


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_a_decoded_stage_plays_as_the_stage_itself(rom: bytes, stage: str) -> None:
    level = levels.decode(rom, stage)
    plain = MarioVectorEnv(2, stage, threads=1)
    ours = MarioVectorEnv(2, levels=[level], threads=1)
    rng = np.random.default_rng(7)
    assert np.array_equal(plain.reset(seed=3)[0], ours.reset(seed=3)[0])
    for _ in range(60):
        actions = rng.choice([1, 2, 3, 4, 4, 4, 6], size=2)
        one, two = plain.step(actions), ours.step(actions)
        assert np.array_equal(one[0], two[0])
        assert np.array_equal(one[1], two[1])
    assert np.array_equal(np.delete(plain.ram, POINTERS, axis=1), np.delete(ours.ram, POINTERS, axis=1))
    plain.close()
    ours.close()


def test_areas_behind_pipes_play_as_with_the_roms_own_bytes(rom: bytes) -> None:
    found = tables(rom)
    main = {found.area_of(stage) for stage in ALL_STAGES}
    rooms = [area for area in levels.all_areas() if area not in main]
    assert len(rooms) > 5
    for area in rooms:
        # A room keeps the time that is left: as a stage of its own it needs some, in the ROM's bytes too.
        changed = bytearray(rom)
        changed[found.pointer("area", area) - 0x8000 + 16] |= 0x40
        image = bytes(changed)
        memory = level_memory(image, levels.decode(image, area))
        plain = bytearray(stage_memory(image))
        place = next(i for i, (a, b) in enumerate(zip(plain, memory, strict=True)) if b == area and a != b)
        plain[place] = area
        played = [play(level_image(image), bytes(m)) for m in (memory, plain)]
        assert np.array_equal(*(np.delete(ram, POINTERS) for ram in played)), area
        # The walk-in has led to another area by then.
        assert area == 41 or not np.array_equal(*played), area


def play(image: bytes, memory: bytes) -> np.ndarray:
    pool = Pool(image, stages=[(1, 1)], memories=[memory], levels=True, actions=[128, 131], height=8, width=8)
    arrays = [
        np.empty((1, 4, 8, 8), np.uint8), np.empty((len(FIELDS), 1), np.int32), np.empty(1, np.bool_),
        np.empty(1, np.bool_), np.empty((1, 4, 8, 8), np.uint8), np.empty((len(FIELDS), 1), np.int32),
    ]  # fmt: skip
    pool.reset(None, np.zeros(1, np.uint64), None, *arrays)
    for i in range(60):
        pool.step(np.array([i // 7 % 2]), *arrays)
    ram = np.empty((1, 2048), np.uint8)
    pool.copy_ram(ram)
    return ram[0]


def test_levels_and_stages_are_mixed_and_named(rom: bytes) -> None:
    envs = MarioVectorEnv(8, stages=["1-1", "4-1"], levels=[FLAG_SOON, HOLE_SOON, FLAG_SOON], threads=2)
    assert envs.stage_names == ["1-1", "4-1", "flag soon", "hole soon", "flag soon (2)"]
    envs.reset(seed=1)
    seen = set()
    for _ in range(400):
        _, _, _, _, info = envs.step(np.full(8, RIGHT))
        seen |= set(info["stage_index"].tolist())
    assert seen == {0, 1, 2, 3, 4}
    envs.set_stage("2-1")
    envs.reset(seed=2)
    assert envs.step(np.zeros(8, np.int64))[4]["world"].tolist() == [2] * 8
    envs.set_stage("hole soon")
    envs.reset(seed=2)
    assert set(envs.step(np.zeros(8, np.int64))[4]["stage_index"].tolist()) == {3}
    envs.close()


def test_no_level_is_lost_whatever_the_names() -> None:
    called = [replace(FLAG_SOON, name=name) for name in ("a (2)", "a", "a", "a")]
    envs = MarioVectorEnv(1, levels=np.array(called, dtype=object), threads=1)  # type: ignore[arg-type]
    assert len(envs.stage_names) == len(set(envs.stage_names)) == 4
    envs.close()


def test_flags_and_deaths_end_episodes_in_levels() -> None:
    envs = MarioVectorEnv(1, levels=[FLAG_SOON], threads=1)
    envs.reset(seed=0)
    for i in range(100):
        _, _, terminated, _, info = envs.step(np.array([RIGHT if i % 6 == 0 else JUMP]))
        if terminated[0]:
            break
    assert terminated[0]
    assert info["flag_get"][0]
    assert ENDS[info["end"][0]] == "flag"
    envs.set_levels({0: HOLE_SOON})
    envs.reset()
    for _ in range(100):
        _, _, terminated, _, info = envs.step(np.array([RIGHT]))
        if terminated[0]:
            break
    assert terminated[0]
    assert not info["flag_get"][0]
    assert ENDS[info["end"][0]] == "death"
    # Without a castle Mario walks on for ever: the episode is given up.
    envs.set_levels({0: NO_CASTLE})
    envs.reset()
    for i in range(100):
        _, _, terminated, truncated, info = envs.step(np.array([RIGHT if i % 6 == 0 else JUMP]))
        if truncated[0]:
            break
    assert truncated[0]
    assert not terminated[0]
    envs.close()


def test_threads_and_snapshots_change_nothing(rom: bytes) -> None:
    played = []
    chosen = [levels.decode(rom, "1-3"), levels.decode(rom, "2-2"), FLAG_SOON]
    for threads in (1, 2):
        envs = MarioVectorEnv(4, levels=chosen, threads=threads, sticky=0.25, noop_max=10)
        envs.reset(seed=5)
        rng = np.random.default_rng(5)
        for _ in range(60):
            envs.step(rng.integers(0, 7, 4))
        blobs = [envs.snapshot(i) for i in range(4)]
        first = [envs.step(np.full(4, a))[0].copy() for a in rng.integers(0, 7, 40)]
        for i, blob in enumerate(blobs):
            envs.restore(i, blob)
        rng = np.random.default_rng(5)
        for _ in range(60):
            rng.integers(0, 7, 4)
        again = [envs.step(np.full(4, a))[0].copy() for a in rng.integers(0, 7, 40)]
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        played.append(np.stack(first))
        envs.close()
    assert np.array_equal(*played)


def test_a_start_queued_from_a_level_keeps_its_place() -> None:
    envs = MarioVectorEnv(1, levels=[FLAG_SOON, HOLE_SOON], threads=1)
    envs.set_stage("hole soon")
    envs.reset(seed=0)
    blob = envs.snapshot(0)
    envs.set_stage("flag soon")
    envs.queue_start(0, blob)
    envs.reset()
    assert envs.step(np.array([0]))[4]["stage_index"].tolist() == [1]
    envs.close()


def hostile_level(rng: np.random.Generator) -> Level:
    kinds = [k for k in ObjectKind if LAYOUTS[k].family is not Family.PAGE]
    things = []
    for column in sorted(rng.integers(0, 400, 60).tolist()):
        kind = kinds[rng.integers(len(kinds))]
        family, _, largest = LAYOUTS[kind]
        row = int(rng.integers(12)) if family in (Family.SINGLE, Family.SIZED) else 0
        column -= family is Family.SPECIAL and column % 16 == 15
        things.append(Object(kind, column, row, int(rng.integers(largest + 1))))
    foes = [k for k in EnemyKind if k is not EnemyKind.PAGE]
    enemies = [
        Enemy(foes[rng.integers(len(foes))], c, int(rng.integers(14)))
        for c in sorted(rng.integers(0, 400, 60).tolist())
    ]
    kind = list(AreaType)[rng.integers(4)]
    return Level(sorted(things, key=lambda o: o.column), enemies, type=kind, stage=f"{rng.integers(1, 9)}-1")  # type: ignore[arg-type]


def test_hostile_levels_neither_crash_nor_hang() -> None:
    rng = np.random.default_rng(11)
    started = 0
    for _ in range(25):
        try:
            envs = MarioVectorEnv(4, levels=[hostile_level(rng)], threads=1)
        except ConfigError as error:
            assert "does not start" in str(error)  # noqa: PT017
            continue
        started += 1
        envs.reset(seed=0)
        for _ in range(100):
            envs.step(rng.choice([1, 2, 4, 4], size=4))
        envs.close()
    assert started > 10


def test_bad_levels_are_refused_in_a_sentence(rom: bytes) -> None:
    with pytest.raises(ConfigError, match="no time, as bonus rooms"):
        MarioVectorEnv(1, levels=[levels.decode(rom, 43)])
    with pytest.raises(ConfigError, match="not with the Lost Levels"):
        MarioVectorEnv(1, levels=[FLAG_SOON], rom=warpzone.rom(), lost_levels=True)
    with pytest.raises(ConfigError, match="whole game"):
        MarioVectorEnv(1, "game", levels=[FLAG_SOON])
    with pytest.raises(ConfigError, match="at least one level"):
        MarioVectorEnv(1, levels=["1-1"])  # type: ignore[list-item]
    for bad in ([], FLAG_SOON, 5):
        with pytest.raises(ConfigError, match="at least one level"):
            MarioVectorEnv(1, levels=bad)  # type: ignore[arg-type]
    envs = MarioVectorEnv(1, "1-1")
    with pytest.raises(ConfigError, match="have no levels"):
        envs.set_levels({0: FLAG_SOON})
    envs.close()
    envs = MarioVectorEnv(1, levels=[FLAG_SOON])
    with pytest.raises(ConfigError, match="no stage 7"):
        envs.set_levels({7: FLAG_SOON})
    envs.close()
