"""The level format: exact both ways for every area, and what it can't express is refused in a sentence."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpzone
from warpzone import levels
from warpzone.errors import ConfigError, RomError
from warpzone.levels import AreaType, Enemy, EnemyKind, Exit, Header, Level, Object, ObjectKind
from warpzone.levels.format import decode_enemies, decode_header, decode_objects, encode_area, encode_enemies
from warpzone.levels.kinds import LAYOUTS, Family
from warpzone.levels.tables import area_data, enemy_data, tables


@pytest.fixture(scope="module")
def rom() -> bytes:
    return warpzone.rom()


@pytest.mark.parametrize("area", levels.all_areas())
def test_every_area_encodes_to_the_bytes_it_was_decoded_from(rom: bytes, area: int) -> None:
    level = levels.decode(rom, area)
    found = tables(rom)
    assert levels.encode(level) == area_data(found, area) + enemy_data(found, area)
    assert levels.from_json(levels.to_json(level)) == level


def test_the_first_stage_is_where_the_public_notes_have_it(rom: bytes) -> None:
    level = levels.decode(rom, "1-1")
    data = encode_area(level)
    assert data == rom[16 + 0x268E : 16 + 0x268E + 101]
    assert levels.encode(level).startswith(data)
    assert level.type is AreaType.GROUND
    assert Object(ObjectKind.FLAGPOLE, 198) in level.objects
    assert level.columns == 224


def test_stages_with_a_walk_in_give_the_area_behind_it(rom: bytes) -> None:
    assert levels.decode(rom, "1-2").type is AreaType.UNDERGROUND
    assert levels.decode(rom, "2-2").type is AreaType.WATER
    assert levels.decode(rom, "8-4").type is AreaType.CASTLE


def objects() -> st.SearchStrategy[Object]:
    def of(kind: ObjectKind) -> st.SearchStrategy[Object]:
        family, _, largest = LAYOUTS[kind]
        rows = st.integers(0, 11) if family in (Family.SINGLE, Family.SIZED) else st.just(0)
        columns = st.integers(0, 511)
        if family is Family.SPECIAL:
            columns = columns.filter(lambda column: column % 16 != 15)
        return st.builds(Object, st.just(kind), columns, rows, st.integers(0, largest))

    return st.sampled_from([kind for kind in ObjectKind if kind is not ObjectKind.PAGE]).flatmap(of)


foes = st.builds(
    Enemy,
    st.sampled_from([k for k in EnemyKind if k is not EnemyKind.PAGE]),
    st.integers(0, 1023),
    st.integers(0, 13),
    st.booleans(),
)
exits = st.builds(
    Exit, st.integers(0, 1023), st.sampled_from(levels.all_areas()), st.integers(1, 8), st.integers(0, 31)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(objects(), max_size=40), st.lists(foes | exits, max_size=40))
def test_a_level_built_by_hand_comes_back_from_its_bytes(
    things: list[Object], others: list[Enemy | Exit]
) -> None:
    level = Level(sorted(things, key=lambda o: o.column), sorted(others, key=lambda e: e.column))  # type: ignore[arg-type]
    data = encode_area(level)
    assert decode_header(data) == level.header
    # Where more than a page is skipped the encoder adds marks.
    seen = [o for o in decode_objects(data) if o.kind is not ObjectKind.PAGE]
    assert tuple(seen) == level.objects
    back = [
        e for e in decode_enemies(encode_enemies(level)) if getattr(e, "kind", None) is not EnemyKind.PAGE
    ]
    assert tuple(back) == level.enemies


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_level_or_refused(data: bytes) -> None:
    for decode in (decode_objects, decode_enemies):
        with contextlib.suppress(ConfigError):
            list(decode(data))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Object(ObjectKind.PIPE, 20, row=12), "row of a pipe"),
        (lambda: Object(ObjectKind.PIPE, 20, size=16), "size of a pipe"),
        (lambda: Object(ObjectKind.HOLE, 20, row=3), "row of a hole"),
        (lambda: Object(ObjectKind.HOLE, 512), "column of a hole"),
        (lambda: Level([Object(ObjectKind.FLAGPOLE, 47)]), "last column of a page"),
        (lambda: Object("pipe", True), "no level object|column"),
        (lambda: Enemy(6, 3), "no enemy 6"),
        (lambda: Enemy(EnemyKind.GOOMBA, 3, row=14), "row of a goomba"),
        (lambda: Exit(3, area=100 + 27), "no area 127"),
        (lambda: Exit(3, area=37, world=9), "world of an exit"),
        (lambda: Header(timer=350), "timer"),
        (lambda: Header(terrain=16), "terrain"),
        (lambda: Level(stage="9-1"), "stage"),
        (lambda: Level(type=AreaType.WATER, number=3), "number of a water area"),
        (lambda: Level([Object(ObjectKind.HOLE, 9), Object(ObjectKind.HOLE, 8)]), "order of their columns"),
        (lambda: Level([Object(ObjectKind.HOLE, i) for i in range(127)]), "257 bytes"),
        (lambda: Level(enemies=[Enemy(EnemyKind.GOOMBA, 0, 1)] * 128), "257 bytes"),
        (lambda: Level(enemies=[Enemy(EnemyKind.GOOMBA, 40), Enemy(EnemyKind.GOOMBA, 8)]), "order of their pages"),
        (lambda: Level([Enemy(EnemyKind.GOOMBA, 0)]), "objects of a level"),
        (lambda: Level(stage="12-"), "stage"),
        (lambda: Level(5), "objects of a level are a list"),
        (lambda: Level(header=None), "levels.Header"),
        (lambda: Level(name=5), "name of a level"),
        (lambda: Level(name="x" * 101), "name of a level"),
        (lambda: Enemy(EnemyKind.GOOMBA, 5, 11, hard=2), "true or false"),
        # These bits count pages, or make another object of it.
        (lambda: Object(ObjectKind.PIPE, 5, 8, 2, spare=0x80), "spare bits of a pipe"),
        (lambda: Object(ObjectKind.PAGE, 5, spare=0x40), "spare bits of a page"),
        (lambda: Enemy(EnemyKind.GOOMBA, 5, 11, spare=0x80), "spare bits of a goomba"),
    ],
)  # fmt: skip
def test_what_the_format_cannot_express_is_refused(build: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        build()  # type: ignore[operator]


def test_other_roms_and_stages_are_refused(rom: bytes) -> None:
    with pytest.raises(RomError, match="no areas"):
        levels.decode(b"NES\x1a" + bytes(40_000), "1-1")
    with pytest.raises(RomError):
        levels.decode(rom[:1000], "1-1")
    found = tables(rom)
    for changed in (
        {found.address("enemy_offsets") - 0x8000 + 1: 0xF0},
        {found.operands["enemy_low"]: 0xFF, found.operands["enemy_low"] + 1: 0xFF},
    ):
        image = bytearray(rom)
        for at, byte in changed.items():
            image[16 + at] = byte
        with pytest.raises(RomError, match="counted in another way"):
            levels.decode(bytes(image), "1-1")
    for name in ("9-1", "game", 31, True):
        with pytest.raises(ConfigError):
            levels.decode(rom, name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"), ("[]", "not a level"), ('{"format": "x"}', "not a level"),
        ('{"format": "warpzone-level-1", "objekts": []}', "did you mean 'objects'"),
        ('{"format": "warpzone-level-1", "objects": {}}', "a list"),
        ('{"format": "warpzone-level-1", "objects": [{"kind": "pype", "column": 3}]}', "did you mean 'pipe'"),
        ('{"format": "warpzone-level-1", "objects": [{"kind": "pipe"}]}', "without a column"),
        ('{"format": "warpzone-level-1", "objects": [{"kind": "pipe", "column": "3"}]}', "whole number"),
        ('{"format": "warpzone-level-1", "enemies": [{"kind": "exit", "column": 3}]}', "number of an area"),
        ('{"format": "warpzone-level-1", "enemies": [{"kind": "goomba", "column": 3, "hard": 5}]}', "true or false"),
        ('{"format": "warpzone-level-1", "header": 3}', "header"),
        ('{"format": "warpzone-level-1", "header": {"timer": 1e99}}', "timer"),
        ('{"format": "warpzone-level-1", "type": ["ground"]}', "type of area"),
        ('{"format": "warpzone-level-1", "stage": null}', "stage"),
        ('{"format": "warpzone-level-1", "number": "x"}', "number of a ground area"),
        ("[" * 100_000, "not JSON"),
    ],
)  # fmt: skip
def test_bad_level_files_are_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        levels.from_json(text)
    assert str(caught.value)[-1] in ".?"


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(ConfigError, match="too large"):
        levels.load("/dev/zero")
