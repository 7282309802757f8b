"""What the game's own areas are made of: short pieces, and which follow which. Read from the user's ROM."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise

from warpzone.levels.format import Enemy, Exit, Header, Object
from warpzone.levels.kinds import AreaType, EnemyKind, ObjectKind
from warpzone.levels.level import STAGES, Level, decode

STYLES = ("overworld", "treetops", "bridges", "underground", "castle", "water")
SHORTEST = 7
"""Columns of a piece, at least."""
_O, _E = ObjectKind, EnemyKind

_WIDE = {
    _O.BRICKS, _O.BLOCKS, _O.COINS, _O.HOLE, _O.WATER_HOLE, _O.BRIDGE, _O.BRIDGE_HIGH, _O.BRIDGE_LOW, _O.QUESTION_ROW,
    _O.QUESTION_ROW_HIGH, _O.PULLEY_ROPE, _O.STAIRS,
}  # fmt: skip
"""Kinds whose size is a length."""
_WIDTHS = {
    _O.PIPE: 2, _O.CASTLE: 9, _O.EXIT_PIPE: 4, _O.INTRO_PIPE: 4, _O.CASTLE_BRIDGE: 13, _O.WATER_PIPE: 2, _O.FLAGPOLE: 5,
}  # fmt: skip
_DROPPED = {
    _O.PAGE, _O.LOOP, _O.SCROLL_STOP, _O.SCROLL_STOP_WARP, _O.SCROLL_STOP_SECRET, _O.BACKDROP, _O.FLYING_CHEEPS,
    _O.BULLETS, _O.FRENZY_END, _O.INTRO_PIPE,
}  # fmt: skip
"""What only makes sense where it stands in the original."""
_LIFTS = range(_E.BALANCE_LIFT.value, _E.SMALL_LIFT_DOWN.value + 1)
_SUPPORTS = {_O.LEDGE, _O.BRIDGE, _O.BRIDGE_HIGH, _O.BRIDGE_LOW, _O.BLOCKS, _O.BRICKS}
_BRIDGE_ROWS = {_O.BRIDGE_HIGH: 6, _O.BRIDGE: 7, _O.BRIDGE_LOW: 9}
FLOOR_ROW = 11


@dataclass(frozen=True)
class Chunk:
    """A piece of an area. Columns are counted from its beginning."""

    objects: tuple[Object, ...]
    enemies: tuple[Enemy | Exit, ...]
    length: int
    entry: int
    """Terrain before its first column."""
    exit: int
    """Terrain behind its last column."""
    source: int
    """Which area it is from."""
    place: int
    """How far into that area it stands, in thousandths."""
    hardness: int = 0
    """Rank among the pieces of its style, in thousandths."""

    @cached_property
    def signature(self) -> frozenset[str]:
        """The kinds of things in it that make it what it is."""
        return frozenset(_class_of(o) for o in self.objects) - {""}

    @cached_property
    def first_support(self) -> tuple[int, int]:
        """Column and row of what one lands on first."""
        return min(self._supports(), default=(0, FLOOR_ROW))

    @cached_property
    def last_support(self) -> tuple[int, int]:
        """Column behind, and row of, what one leaves from."""
        ends = [(column + width, row) for column, row, width in self._spans()]
        return max(ends, default=(self.length, FLOOR_ROW))

    def _supports(self) -> list[tuple[int, int]]:
        return [(column, row) for column, row, _ in self._spans()]

    def _spans(self) -> list[tuple[int, int, int]]:
        spans = [
            (o.column, _BRIDGE_ROWS.get(o.kind, o.row), o.size + 1)
            for o in self.objects
            if o.kind in _SUPPORTS and (o.kind not in (_O.BLOCKS, _O.BRICKS) or o.row > 5)
        ]
        spans += [(e.column, max(e.row, 4), 3) for e in self.enemies if is_lift(e)]
        terrain, since = self.entry, 0
        for o in [*(o for o in self.objects if o.kind is _O.TERRAIN), Object(_O.TERRAIN, self.length - 1)]:
            if terrain:
                spans.append((since, FLOOR_ROW, o.column + 1 - since))
            terrain, since = o.size & 15, o.column + 1
        return spans


@dataclass
class Library:
    """All pieces of a style."""

    style: str
    type: AreaType
    headers: list[Header] = field(default_factory=list)
    openings: list[Chunk] = field(default_factory=list)
    middles: list[Chunk] = field(default_factory=list)
    endings: list[Chunk] = field(default_factory=list)
    follows: Counter[tuple[frozenset[str], frozenset[str]]] = field(default_factory=Counter)
    """How often a piece with one signature comes after one with another."""
    terrains: set[tuple[int, int]] = field(default_factory=set)
    """Terrains that meet somewhere."""


def is_lift(e: Enemy | Exit) -> bool:
    return isinstance(e, Enemy) and e.kind.value in _LIFTS


def _class_of(o: Object) -> str:
    if o.kind in (_O.HOLE, _O.WATER_HOLE):
        return "hole"
    if o.kind in (_O.BRICKS, _O.QUESTION_ROW, _O.QUESTION_ROW_HIGH) or o.kind.name.startswith(
        ("BRICK_", "QUESTION_")
    ):
        return "blocks"
    if o.kind in (_O.STAIRS, _O.BLOCKS, _O.BLOCK_COLUMN):
        return "stairs"
    return "" if o.kind in (_O.COINS, _O.TERRAIN) or "HIDDEN" in o.kind.name else o.kind.name


def width(o: Object, style: int) -> int:
    """Columns that an object covers."""
    if o.kind is _O.LEDGE:
        return 1 if style == 2 else o.size + 1
    return o.size + 1 if o.kind in _WIDE else _WIDTHS.get(o.kind, 1)


@lru_cache(maxsize=4)
def libraries(rom: bytes) -> dict[str, Library]:
    """The pieces of every style, from the main areas of the 32 stages."""
    found: dict[str, Library] = {}
    for i, level in enumerate({a.area: a for a in (decode(rom, stage) for stage in STAGES)}.values()):
        style = _style_of(level)
        library = found.setdefault(style, Library(style, level.type))
        library.headers.append(level.header)
        _cut(level, i, library)
    # There is one area of bridges: trees stand between them.
    found["bridges"].middles += [replace(c, hardness=0) for c in found["treetops"].middles]
    for library in found.values():
        library.middles = _ranked(library.middles)
    return found


def _style_of(level: Level) -> str:
    kinds = {o.kind for o in level.objects}
    if level.type is AreaType.GROUND:
        if _O.BRIDGE in kinds and _O.LEDGE in kinds and level.header.style == 0:
            return "bridges"
        return "treetops" if _O.LEDGE in kinds and level.header.style < 2 else "overworld"
    return level.type.name.lower()


def _cut(level: Level, source: int, library: Library) -> None:
    """Cut an area where nothing stands across, and note what follows what."""
    floating = library.style in ("treetops", "bridges")
    objects = [o for o in level.objects if o.kind is not _O.PAGE]
    end = _end_of(objects)
    terrain = [level.header.terrain] * (level.columns + 1)
    blocked = [False] * (level.columns + 17)
    for o in objects:
        if o.kind is _O.TERRAIN:
            terrain[o.column + 1 :] = [o.size & 15] * (level.columns - o.column)
            library.terrains.add((terrain[o.column], o.size & 15))
        # A free column on each side: what stands close together was meant to.
        over = 1 if library.style == "overworld" or o.kind in (_O.HOLE, _O.WATER_HOLE) else 0
        for column in range(
            max(o.column + 1 - over, 0), min(o.column + width(o, level.header.style) + over, level.columns)
        ):
            blocked[column] = True
    for e in level.enemies:
        if is_lift(e):
            for column in range(max(e.column - 1, 0), min(e.column + 5, level.columns)):
                blocked[column] = True
    cuts = [0]
    for column in range(1, end):
        level_ground = terrain[column - 1] == terrain[column]
        standing = level_ground and (terrain[column] == 0 if floating else terrain[column] not in (0, 15))
        if column - cuts[-1] >= SHORTEST and not blocked[column] and standing:
            cuts.append(column)
    while len(cuts) > 2 and end - cuts[-1] < SHORTEST:
        cuts.pop()
    pieces = [
        _piece(level, objects, a, b, terrain, source, last=b == level.columns)
        for a, b in zip(cuts, [*cuts[1:], level.columns], strict=True)
    ]
    library.openings.append(pieces[0])
    library.endings.append(_ending(pieces[-1], [e for e in level.enemies if isinstance(e, Exit)]))
    library.middles += pieces[1:-1]
    for one, two in pairwise(pieces):
        library.follows[one.signature, two.signature] += 1


def _ending(c: Chunk, exits: list[Exit]) -> Chunk:
    """The last piece. Where a pipe is the way out, what lies behind it is left out, and the exit comes before it."""
    pipes = [o.column for o in c.objects if o.kind in (_O.EXIT_PIPE, _O.WATER_PIPE)]
    if not pipes:
        return replace(c, enemies=tuple(e for e in c.enemies if isinstance(e, Enemy)))
    pipe = pipes[-1]
    kept = [_plain(o) for o in c.objects if o.column <= pipe + 4 and o.kind not in _DROPPED]
    # Who climbs over the pipe must not get lost behind it.
    kept.append(Object(_O.SCROLL_STOP, pipe + 9))
    foes: list[Enemy | Exit] = [
        e for e in c.enemies if isinstance(e, Enemy) and e.column < pipe and e.kind is not _E.WARP_ZONE
    ]
    foes.append(replace(exits[-1], column=max(pipe - 6, 0)))
    foes.sort(key=lambda e: e.column)
    return replace(c, objects=tuple(kept), enemies=tuple(foes), length=pipe + 16)


def _end_of(objects: list[Object]) -> int:
    """Column before which the last piece begins: it holds the flag, the bridge of a castle, or the exit."""
    for kind, before in ((_O.CASTLE_BRIDGE, 2), (_O.FLAGPOLE, 14), (_O.EXIT_PIPE, 0), (_O.WATER_PIPE, 0)):
        at = [o.column for o in objects if o.kind is kind]
        if at:
            return at[-1] - before
    return objects[-1].column


def _piece(
    level: Level, objects: list[Object], start: int, stop: int, terrain: list[int], source: int, last: bool
) -> Chunk:
    kept = [replace(o, column=o.column - start) for o in objects if start <= o.column < stop]
    here = [e for e in level.enemies if start <= e.column < stop and getattr(e, "kind", None) is not _E.PAGE]
    foes = [replace(e, column=e.column - start) for e in here]
    if not last:
        kept = [_plain(o) for o in kept if o.kind not in _DROPPED]
        foes = [e for e in foes if isinstance(e, Enemy)]
    place = start * 1000 // level.columns
    return Chunk(tuple(kept), tuple(foes), stop - start, terrain[start], terrain[stop], source, place)


def _plain(o: Object) -> Object:
    """Pipes that lead nowhere, and no vines."""
    if o.kind is _O.PIPE:
        return replace(o, size=o.size & 7)
    return replace(o, kind=_O.BRICK_COINS) if o.kind is _O.BRICK_VINE else o


def _hardness(c: Chunk) -> int:
    gaps = sum(o.size + 1 for o in c.objects if o.kind in (_O.HOLE, _O.WATER_HOLE))
    foes = sum(4 if e.kind in (_E.HAMMER_BRO, _E.LAKITU) else 2 for e in c.enemies if isinstance(e, Enemy))
    cannons = sum(3 for o in c.objects if o.kind is _O.LEDGE and c.entry)
    return (gaps * 2 + foes + cannons) * 100 // c.length + c.place // 20


def _ranked(chunks: list[Chunk]) -> list[Chunk]:
    """With their place in the order of hardness; those that stand twice in the game are taken once."""
    unique = list({(c.objects, c.enemies, c.length): c for c in chunks}.values())
    order = sorted(range(len(unique)), key=lambda i: (_hardness(unique[i]), i))
    rank = {i: at * 1000 // max(len(unique) - 1, 1) for at, i in enumerate(order)}
    return [replace(c, hardness=rank[i]) for i, c in enumerate(unique)]
