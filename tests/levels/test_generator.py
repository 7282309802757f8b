"""Generated levels: the same from the same seed, within the game's limits, with an end, and playable."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import warpzone
from warpzone import MarioVectorEnv, levels
from warpzone.errors import ConfigError, RomError
from warpzone.levels import Enemy, EnemyKind, Exit, Level, ObjectKind
from warpzone.levels.chunks import STYLES, libraries
from warpzone.levels.format import encode_area, encode_enemies
from warpzone.levels.random import SplitMix
from warpzone.levels.tables import tables
from warpzone.starts.level_check import solve

EXITS = {ObjectKind.FLAGPOLE, ObjectKind.AXE, ObjectKind.EXIT_PIPE, ObjectKind.WATER_PIPE}


@pytest.fixture(scope="module")
def rom() -> bytes:
    return warpzone.rom()


@pytest.mark.parametrize("style", STYLES)
def test_levels_of_every_style_fit_the_format_and_have_an_end(rom: bytes, style: str) -> None:
    for seed in range(24):
        level = levels.generate(seed, (seed % 11) / 10, style, rom=rom)
        assert len(encode_area(level)) <= 256
        assert len(encode_enemies(level)) <= 256
        ends = [o.column for o in level.objects if o.kind in EXITS]
        assert ends
        assert 90 < ends[-1] < 31 * 16
        if ObjectKind.FLAGPOLE in {o.kind for o in level.objects}:
            castle = [o.column for o in level.objects if o.kind is ObjectKind.CASTLE][-1]
            assert castle > ends[-1]
        if style in ("underground", "water"):
            world = int(level.stage[0])
            assert [e.world for e in level.enemies if isinstance(e, Exit)] == [world]


def test_a_seed_gives_the_same_level_everywhere(rom: bytes) -> None:
    whole = b"".join(levels.encode(levels.generate(seed, 0.3, rom=rom)) for seed in range(20))
    assert whole == b"".join(levels.encode(levels.generate(seed, 0.3, rom=rom)) for seed in range(20))
    if hashlib.sha256(rom).hexdigest().startswith("ec299b990e8b"):
        assert hashlib.sha256(whole).hexdigest()[:16] == "c4ef1aa3afbe0a1c"
    assert levels.generate(5, 0.3, rom=rom) == levels.generate(5, 0.3, rom=rom)


def test_seeds_and_difficulties_give_different_levels(rom: bytes) -> None:
    made = {levels.encode(levels.generate(seed, d, rom=rom)) for seed in range(12) for d in (0.0, 0.5, 1.0)}
    assert len(made) == 36
    originals = {levels.encode(levels.decode(rom, area)) for area in levels.all_areas()}
    assert not made & originals


def foes(level: Level) -> int:
    return sum(isinstance(e, Enemy) and e.kind.value < EnemyKind.BALANCE_LIFT.value for e in level.enemies)


def test_more_difficult_levels_have_more_enemies_and_later_worlds(rom: bytes) -> None:
    easy, hard = (
        [levels.generate(seed, difficulty, "overworld", rom=rom) for seed in range(12)] for difficulty in (0.0, 1.0)
    )  # fmt: skip
    assert sum(map(foes, hard)) > 1.5 * sum(map(foes, easy))
    assert max(int(level.stage[0]) for level in easy) <= 2
    assert min(int(level.stage[0]) for level in hard) >= 7


def test_the_pieces_come_from_the_roms_own_areas(rom: bytes) -> None:
    for style, library in libraries(rom).items():
        assert library.middles, style
        assert library.follows, style
        assert all(c.length >= 4 for c in library.middles), style


def test_a_rom_with_other_areas_is_refused(rom: bytes) -> None:
    at = 16 + tables(rom).address("stages") - 0x8000
    one_area = bytes([levels.decode(rom, "1-1").area]) * 36
    with pytest.raises(RomError, match="not those of Super Mario Bros"):
        levels.generate(7, rom=rom[:at] + one_area + rom[at + 36 :])


def test_generated_levels_start_and_run(rom: bytes) -> None:
    rng = np.random.default_rng(0)
    for first in range(0, 36, 12):
        made = [levels.generate(seed, 0.1 * (seed % 11), rom=rom) for seed in range(first, first + 12)]
        envs = MarioVectorEnv(12, levels=made, threads=1, size=(16, 16))
        envs.reset(seed=first)
        for _ in range(40):
            envs.step(rng.choice([1, 3, 4, 4], size=12))
        envs.close()


@pytest.mark.parametrize("style", ["overworld", "castle"])
def test_an_easy_level_is_solved_by_search(rom: bytes, style: str) -> None:
    level = levels.generate(1, 0.0, style, rom=rom)
    found = solve(level)
    assert found.solvable
    assert solve(level) == found


def test_a_wall_without_end_is_not_solved() -> None:
    wall = [
        levels.Object(ObjectKind.BLOCK_COLUMN, 12, row=0, size=10),
        levels.Object(ObjectKind.FLAGPOLE, 40),
    ]
    found = solve(Level(wall), decisions=3000)
    assert not found.solvable
    assert found.furthest < 12 * 16


def test_random_numbers_are_those_of_splitmix64() -> None:
    # The published first values of the stream for seed 1234567.
    stream = SplitMix(1234567)
    assert [stream.next() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@pytest.mark.parametrize(
    ("seed", "difficulty", "style"),
    [
        (-1, 0.3, None),
        (1 << 62, 0.3, None),
        (1.5, 0.3, None),
        (1, 1.1, None),
        (1, float("nan"), None),
        (1, 0.3, "sky"),
    ],
)
def test_bad_arguments_are_refused(seed: int, difficulty: float, style: str | None) -> None:
    with pytest.raises(ConfigError):
        levels.generate(seed, difficulty, style)
