"""The game's own level format: a header, objects of two bytes, enemies of two or three, in streams of 256 at most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warpzone.errors import ConfigError
from warpzone.levels.kinds import ENEMY_OF, LAYOUTS, OBJECT_OF, ROWS, AreaType, EnemyKind, Family, ObjectKind

LONGEST_STREAM = 256
"""Bytes: the game counts them with one byte."""
PAGE_COLUMNS = 16
OBJECT_PAGES, ENEMY_PAGES = 32, 64
OBJECTS_END, ENEMIES_END = 0xFD, 0xFF
TIMERS = (0, 400, 300, 200)
AREA_COUNTS = {AreaType.WATER: 3, AreaType.GROUND: 22, AreaType.UNDERGROUND: 3, AreaType.CASTLE: 6}
"""Areas of each type, in the order of the game's table of area data."""
_ROW_EXIT, _ROW_ENEMY_PAGE = 14, 15
_SPARE = {ObjectKind.PAGE: 0xA0, ObjectKind.BACKDROP: 0x38, EnemyKind.PAGE: 0xC0}
"""Bits of a kind's second byte that the game ignores."""


def _require(what: str, of: str, value: object, most: int) -> None:
    # The sentence is put together only where it is needed: levels are made of thousands of these.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ConfigError(f"The {what} of {of} is a whole number from 0 to {most}, not {value!r}.")


def _require_spare(of: str, kind: ObjectKind | EnemyKind, bits: object) -> None:
    if isinstance(bits, bool) or not isinstance(bits, int) or bits & ~_SPARE.get(kind, 0):
        raise ConfigError(f"The spare bits of {of} are those that the game ignores, not {bits!r}.")


@dataclass(frozen=True)
class Header:
    """What an area begins with."""

    timer: int = 400
    """Time on the clock: 400, 300 or 200; 0 keeps what is left, as in bonus rooms."""
    entrance: int = 2
    """Where and how Mario comes in, 0 to 7; 2 stands on the ground."""
    backdrop: int = 0
    """0 to 3: foreground (none, water, wall, water); 4 to 7: colours (night, snow, night with snow, grey)."""
    style: int = 0
    """What ledges are: 0 trees, 1 mushrooms, 2 cannons; 3 is a bonus area in the clouds."""
    scenery: int = 0
    """0 none, 1 clouds, 2 hills, 3 fences."""
    terrain: int = 1
    """Floor and ceiling, 0 to 15; 0 none, 1 a floor of two rows."""

    def __post_init__(self) -> None:
        if self.timer not in TIMERS:
            raise ConfigError(f"The timer of a level is 0, 200, 300 or 400, not {self.timer!r}.")
        for name, most in (("entrance", 7), ("backdrop", 7), ("style", 3), ("scenery", 3), ("terrain", 15)):
            _require(name, "a level", getattr(self, name), most)


@dataclass(frozen=True)
class Object:
    """A part of an area: a pipe, a row of bricks, a change of the terrain."""

    kind: ObjectKind
    column: int
    """In blocks of 16 pixels from the beginning of the area."""
    row: int = 0
    """0 (top) to 11, for the kinds that have one; the floor is at row 11 (of 13)."""
    size: int = 0
    """Length or height in blocks, less one, for the kinds that have one."""
    spare: int = 0
    """Bits that the game ignores, kept so that an area encodes to the same bytes."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, ObjectKind):
            raise ConfigError(f"There is no level object {self.kind!r}: see warpzone.levels.ObjectKind.")
        layout, name = LAYOUTS[self.kind], "a " + self.kind.value
        with_row = layout.family in (Family.SINGLE, Family.SIZED)
        _require("column", name, self.column, OBJECT_PAGES * PAGE_COLUMNS - 1)
        _require("row", name, self.row, 11 if with_row else 0)
        _require("size", name, self.size, layout.largest)
        _require_spare(name, self.kind, self.spare)


@dataclass(frozen=True)
class Enemy:
    """An enemy, a lift or a group."""

    kind: EnemyKind
    column: int
    row: int = 0
    """0 (top) to 13, in blocks."""
    hard: bool = False
    """Only from world 5-3 on."""
    spare: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kind, EnemyKind):
            raise ConfigError(f"There is no enemy {self.kind!r}: see warpzone.levels.EnemyKind.")
        name = f"a {self.kind.name.lower().replace('_', ' ')}"
        _require("column", name, self.column, ENEMY_PAGES * PAGE_COLUMNS - 1)
        _require("row", name, self.row, 0 if self.kind is EnemyKind.PAGE else 13)
        _require_spare(name, self.kind, self.spare)
        if not isinstance(self.hard, bool):
            raise ConfigError(f"Whether {name} is only for hard stages is true or false, not {self.hard!r}.")
        if self.kind is EnemyKind.PAGE and self.column % PAGE_COLUMNS == 15:
            raise ConfigError(f"A page of enemies can't begin in its last column ({self.column}).")


@dataclass(frozen=True)
class Exit:
    """From this column on, pipes and vines lead to another area."""

    column: int
    area: int
    """Number of the area: its type times 32, and its place among those."""
    world: int = 1
    """The world in which it holds, 1 to 8."""
    page: int = 0
    """Page of that area on which Mario comes in."""
    row: int = _ROW_EXIT

    def __post_init__(self) -> None:
        _require("column", "an exit", self.column, ENEMY_PAGES * PAGE_COLUMNS - 1)
        _require("page", "an exit", self.page, 31)
        _require("world", "an exit", self.world - 1 if isinstance(self.world, int) else self.world, 7)
        check_area(self.area)
        if self.row != _ROW_EXIT:
            raise ConfigError("An exit has no row.")


@dataclass(frozen=True)
class LevelData:
    """An area of the game with its enemies, and where the game shall have it."""

    objects: tuple[Object, ...] = ()
    enemies: tuple[Enemy | Exit, ...] = ()
    header: Header = Header()
    type: AreaType = AreaType.GROUND
    stage: str = "1-1"
    """The stage that it takes the place of: shown on the screen, and how hard enemies are."""
    number: int = 0
    """The area of its type that it takes the place of; exits of other areas to that number lead here."""
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.type, AreaType):
            raise ConfigError(f"A level is of type WATER, GROUND, UNDERGROUND or CASTLE, not {self.type!r}.")
        most = AREA_COUNTS[self.type] - 1
        _require("number", f"a {self.type.name.lower()} area", self.number, most)
        if not isinstance(self.stage, str) or not re.fullmatch("[1-8]-[1-4]", self.stage):
            raise ConfigError(f"A level takes the place of a stage '1-1' to '8-4', not {self.stage!r}.")
        if not isinstance(self.name, str) or len(self.name) > 100:
            raise ConfigError("The name of a level is a text of at most 100 letters.")
        if not isinstance(self.header, Header):
            raise ConfigError(f"The header of a level is a levels.Header, not {self.header!r}.")
        for name in ("objects", "enemies"):
            given = getattr(self, name)
            if not isinstance(given, Iterable):
                raise ConfigError(f"The {name} of a level are a list, not {given!r}.")
            object.__setattr__(self, name, tuple(given))
        encode(self)

    @property
    def area(self) -> int:
        """The game's number for the area: its type times 32, and its place among those."""
        return self.type.value * 32 + self.number

    @property
    def columns(self) -> int:
        """Width in blocks, whole pages: up to the last object or enemy."""
        # A castle beside the flagpole ends a screen later.
        furthest = [o.column + (12 if o.kind is ObjectKind.FLAGPOLE else 0) for o in self.objects]
        furthest += [e.column for e in self.enemies if isinstance(e, Enemy)]
        return (max(furthest, default=0) // PAGE_COLUMNS + 1) * PAGE_COLUMNS


def check_area(area: int) -> None:
    """Refuse the number of an area that the game does not have."""
    _require("number", "an area", area, 127)
    if area % 32 >= AREA_COUNTS[AreaType(area // 32)]:
        raise ConfigError(f"The game has no area {area} ({AreaType(area // 32).name.lower()} {area % 32}).")


def can_stand(o: Object) -> bool:
    """Whether the first byte of an object is not the one that ends a level."""
    return ROWS.get(LAYOUTS[o.kind].family) != 13 or o.column % PAGE_COLUMNS != 15


# ---- bytes ----


def encode(level: LevelData) -> bytes:
    """The level as the game's bytes: the area data (header and objects), then the enemy data."""
    return encode_area(level) + encode_enemies(level)


def encode_area(level: LevelData) -> bytes:
    """Header and objects."""
    h = level.header
    out = bytearray([
        TIMERS.index(h.timer) << 6 | h.entrance << 3 | h.backdrop, h.style << 6 | h.scenery << 4 | h.terrain,
    ])  # fmt: skip
    page, last = 0, 0
    for o in level.objects:
        if not isinstance(o, Object):
            raise ConfigError(f"The objects of a level are levels.Object, not {o!r}.")
        if o.column < last:
            raise ConfigError(f"Objects stand in the order of their columns: {o.column} comes after {last}.")
        last = o.column
        if not can_stand(o):
            raise ConfigError(
                f"A {o.kind} can't stand in the last column of a page ({o.column}): its byte ends a level."
            )
        here = o.column // PAGE_COLUMNS
        if o.kind is ObjectKind.PAGE:
            out += _pair(o.column, 13, here | o.spare)
        else:
            if here > page + 1:
                out += _pair(0, 13, here)
            out += _object_pair(o, 0x80 if here == page + 1 else 0)
        page = here
    return _finished(out, OBJECTS_END, "objects")


def _object_pair(o: Object, flag: int) -> bytes:
    family, code, _ = LAYOUTS[o.kind]
    row = ROWS.get(family, o.row)
    if family in (Family.SINGLE, Family.SPECIAL):
        value = code | (0x40 if family is Family.SPECIAL else 0)
    else:
        value = code << 4 | o.size
    return _pair(o.column, row, flag | value | o.spare)


def _pair(column: int, row: int, value: int) -> bytes:
    return bytes([column % PAGE_COLUMNS << 4 | row, value])


def encode_enemies(level: LevelData) -> bytes:
    """Enemies and exits."""
    out = bytearray()
    page = 0
    for e in level.enemies:
        if not isinstance(e, Enemy | Exit):
            raise ConfigError(f"The enemies of a level are levels.Enemy or levels.Exit, not {e!r}.")
        here = e.column // PAGE_COLUMNS
        if here < page:
            raise ConfigError(
                f"Enemies stand in the order of their pages: column {e.column} is on page {here}."
            )
        if isinstance(e, Enemy) and e.kind is EnemyKind.PAGE:
            out += _pair(e.column, _ROW_ENEMY_PAGE, here | e.spare)
        else:
            if here > page + 1:
                out += _pair(0, _ROW_ENEMY_PAGE, here)
            flag = 0x80 if here == page + 1 else 0
            if isinstance(e, Exit):
                out += _pair(e.column, _ROW_EXIT, flag | e.area) + bytes([(e.world - 1) << 5 | e.page])
            else:
                out += _pair(e.column, e.row, flag | e.hard << 6 | e.kind.value | e.spare)
        page = here
    return _finished(out, ENEMIES_END, "enemies")


def _finished(out: bytearray, end: int, what: str) -> bytes:
    out.append(end)
    if len(out) > LONGEST_STREAM:
        raise ConfigError(
            f"The {what} of a level need {len(out)} bytes: the game reads {LONGEST_STREAM} at most, so leave some out."
        )
    return bytes(out)


def decode_header(data: bytes) -> Header:
    """The header in the first two bytes of area data."""
    first, second = data[0], data[1]
    return Header(
        timer=TIMERS[first >> 6], entrance=first >> 3 & 7, backdrop=first & 7,
        style=second >> 6, scenery=second >> 4 & 3, terrain=second & 15,
    )  # fmt: skip


def decode_objects(data: bytes) -> Iterator[Object]:
    """The objects in area data, behind its header."""
    page = 0
    for at in range(2, len(data), 2):
        if data[at] == OBJECTS_END:
            return
        column, row, value = data[at] >> 4, data[at] & 15, data[at + 1] if at + 1 < len(data) else -1
        if value < 0:
            break
        if row == 13 and not value & 0x40:
            page = value & 31
            yield Object(ObjectKind.PAGE, page * PAGE_COLUMNS + column, spare=value & 0xA0)
            continue
        page += value >> 7
        yield _decoded_object(page * PAGE_COLUMNS + column, row, value & 0x7F)
    raise ConfigError("The objects of a level are cut short: they end with the byte 0xFD.")


def _decoded_object(column: int, row: int, value: int) -> Object:
    size, code, spare = value & 15, value >> 4, 0
    if row < 12:
        family = Family.SIZED if code else Family.SINGLE
        if family is Family.SINGLE:
            code, size = size, 0
    elif row == 13:
        family, code, size = Family.SPECIAL, value & 0x3F, 0
    elif row == 14:
        family, code = Family.SETTING, 4 * (code >> 2)
        size, spare = (value & 7, value & 0x38) if code else (value & 0x3F, 0)
    else:
        family = Family.FLOOR if row == 12 else Family.TALL
    if (family, code) not in OBJECT_OF:
        raise ConfigError(f"A level has an unknown object in column {column}: row {row}, value {value}.")
    return Object(OBJECT_OF[family, code], column, row if row < 12 else 0, size, spare)


def decode_enemies(data: bytes) -> Iterator[Enemy | Exit]:
    """The enemies and exits in enemy data."""
    page, at = 0, 0
    while at < len(data):
        if data[at] == ENEMIES_END:
            return
        column, row = data[at] >> 4, data[at] & 15
        size = 3 if row == _ROW_EXIT else 2
        if at + size > len(data):
            break
        value = data[at + 1]
        if row == _ROW_ENEMY_PAGE:
            page = value & 63
            yield Enemy(EnemyKind.PAGE, page * PAGE_COLUMNS + column, spare=value & 0xC0)
        else:
            page += value >> 7
            column += page * PAGE_COLUMNS
            if row == _ROW_EXIT:
                third = data[at + 2]
                yield Exit(column, value & 0x7F, (third >> 5) + 1, third & 31)
            elif value & 63 in ENEMY_OF:
                yield Enemy(ENEMY_OF[value & 63], column, row, hard=bool(value & 0x40))
            else:
                raise ConfigError(f"A level has an unknown enemy {value & 63} in column {column}.")
        at += size
    raise ConfigError("The enemies of a level are cut short: they end with the byte 0xFF.")
