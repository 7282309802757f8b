"""New levels from the pieces of the game's own: what follows what is learned from the user's ROM."""

from __future__ import annotations

from dataclasses import replace

from warpzone.engine.rom import rom as find_rom
from warpzone.errors import ConfigError, RomError
from warpzone.levels.chunks import FLOOR_ROW, STYLES, Chunk, Library, is_lift, libraries
from warpzone.levels.format import LONGEST_STREAM, PAGE_COLUMNS, Enemy, Exit, Object, can_stand
from warpzone.levels.kinds import EnemyKind, ObjectKind
from warpzone.levels.level import Level
from warpzone.levels.random import SplitMix

LARGEST_SEED = 1 << 62
_O, _E = ObjectKind, EnemyKind
_STYLE_WEIGHTS = {"overworld": 8, "treetops": 3, "bridges": 2, "underground": 3, "castle": 3, "water": 1}
_NUMBER_IN_WORLD = {"overworld": 1, "treetops": 3, "bridges": 3, "underground": 2, "castle": 4, "water": 2}
"""Which stage of a world has a style in the game."""
_COLUMNS = {
    "overworld": 150,
    "treetops": 110,
    "bridges": 130,
    "underground": 120,
    "castle": 100,
    "water": 120,
}
"""Columns before the last piece, at least."""
_FLOATING = ("treetops", "bridges")
_LARGEST_CHUNK = 40
"""Bytes that a piece may need."""
_WALKERS = (_E.GOOMBA, _E.GREEN_KOOPA, _E.RED_KOOPA, _E.BUZZY_BEETLE)
_GROUPS = (_E.TWO_GOOMBAS, _E.THREE_GOOMBAS, _E.TWO_KOOPAS, _E.THREE_KOOPAS)
_QUESTIONS = (_O.QUESTION_COIN, _O.QUESTION_COIN, _O.QUESTION_POWERUP)
_BRICKS = (_O.BRICK_COINS, _O.BRICK_STAR, _O.BRICK_POWERUP)
_CONTENTS = {
    _O.QUESTION_COIN: _QUESTIONS, _O.QUESTION_POWERUP: _QUESTIONS, _O.BRICK_COINS: _BRICKS, _O.BRICK_POWERUP: _BRICKS,
}  # fmt: skip
"""What may be in a block instead."""
_TRIES = 60


def generate(
    seed: int, difficulty: float = 0.3, style: str | None = None, *, rom: bytes | None = None
) -> Level:
    """The level of a seed: the same on every machine with the same ROM.

    `difficulty` from 0 to 1 chooses pieces with more and wider gaps and more enemies, and a later world. `style` is one
    of overworld, treetops, bridges, underground, castle and water; the seed chooses where it is None.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < LARGEST_SEED:
        raise ConfigError(f"The seed of a level is a whole number from 0 to 2^62 - 1, not {seed!r}.")
    if isinstance(difficulty, bool) or not isinstance(difficulty, int | float) or not 0 <= difficulty <= 1:
        raise ConfigError(f"The difficulty of a level is a number from 0 to 1, not {difficulty!r}.")
    if style is not None and style not in STYLES:
        raise ConfigError(f"There is no style {style!r}: choose one of {', '.join(STYLES)}.")
    thousandths = round(difficulty * 1000)
    random = SplitMix(seed * 1009 + thousandths)
    chosen = random.weighted(STYLES, [_STYLE_WEIGHTS[name] for name in STYLES])
    try:
        library = libraries(find_rom() if rom is None else bytes(rom))[style or chosen]
    except (KeyError, IndexError) as error:
        raise RomError(
            "The ROM's areas are not those of Super Mario Bros: give its ROM to generate."
        ) from error
    name = f"seed {seed} at {thousandths / 1000:g} ({library.style})"
    return _Builder(library, random, thousandths, name).build()


class _Builder:
    """One level in the making."""

    def __init__(self, library: Library, random: SplitMix, difficulty: int, name: str) -> None:
        self._library, self._random, self._difficulty, self._name = library, random, difficulty, name
        self._objects: list[Object] = []
        self._enemies: list[Enemy | Exit] = []
        self._column = 0
        self._chunk: Chunk | None = None
        self._floating = library.style in _FLOATING
        world = 1 + (difficulty * 6 + random.below(1400)) // 1000
        self._world = min(max(world, 1), 8)
        header = random.choice(library.headers)
        # A wall behind the first castle ends where the original says so.
        self._header = replace(header, backdrop=0) if header.backdrop == 2 else header

    def build(self) -> Level:
        library, random = self._library, self._random
        ending = random.choice(library.endings)
        self._add(self._eased(random.choice(library.openings), opening=True))
        least = _COLUMNS[library.style] + random.below(50)
        for _ in range(_TRIES):
            ready = self._column >= least and self._fits(ending)
            if ready or not self._room_for(ending):
                break
            self._add(self._eased(self._next()))
        self._bridge_to(ending)
        self._add(replace(ending, enemies=tuple(self._in_world(e) for e in ending.enemies)))
        return self._level(self._objects, self._enemies)

    def _level(self, objects: list[Object], enemies: list[Enemy | Exit]) -> Level:
        stage = f"{self._world}-{_NUMBER_IN_WORLD[self._library.style]}"
        objects = sorted(objects, key=lambda o: o.column)
        enemies = sorted(enemies, key=lambda e: e.column)
        return Level(tuple(objects), tuple(enemies), self._header, self._library.type, stage, 0, self._name)

    def _in_world(self, e: Enemy | Exit) -> Enemy | Exit:
        return replace(e, world=self._world) if isinstance(e, Exit) else e

    # ---- choosing ----

    def _next(self) -> Chunk:
        """A piece that may follow: by what follows what in the game, and as hard as was asked for."""
        library, last = self._library, self._chunk
        candidates = [c for c in library.middles if self._fits(c)] or library.middles
        signature = last.signature if last else frozenset()
        weights = []
        for c in candidates:
            seen = library.follows[signature, c.signature]
            off = abs(c.hardness - self._difficulty)
            weights.append((1 + 4 * min(seen, 5)) * max(1, 1000 - 3 * off) * (1 if self._repeats(c) else 20))
        return self._random.weighted(candidates, weights)

    def _repeats(self, c: Chunk) -> bool:
        last = self._chunk
        return last is not None and last.source == c.source and last.place >= c.place

    def _fits(self, c: Chunk) -> bool:
        """Whether one can go from the last piece to this one."""
        last = self._chunk
        if last is None:
            return True
        if self._floating:
            (_, row), (_, before) = c.first_support, last.last_support
            return before - row <= 3 and row - before <= 7
        return last.exit == c.entry or (last.exit, c.entry) in self._library.terrains

    def _room_for(self, ending: Chunk) -> bool:
        """Whether another piece and the last one still fit the streams and the pages."""
        if self._column + ending.length + 60 > 31 * PAGE_COLUMNS:
            return False
        # Two bytes each, and as much for each page that is skipped at worst.
        pages = (self._column + ending.length) // PAGE_COLUMNS + 4
        objects = 2 * (len(self._objects) + len(ending.objects) + pages // 2) + _LARGEST_CHUNK
        enemies = 2 * (len(self._enemies) + len(ending.enemies) + pages // 2) + _LARGEST_CHUNK
        return max(objects, enemies) < LONGEST_STREAM

    # ---- placing ----

    def _add(self, c: Chunk) -> None:
        last = self._chunk
        at = 0
        if last is not None:
            at = self._joint(last, c)
            while not all(can_stand(replace(o, column=o.column + at)) for o in c.objects):
                at += 1
            if last.exit != c.entry:
                self._objects.append(
                    Object(_O.TERRAIN, max(at - 1, 0), size=c.entry | self._header.scenery << 4)
                )
        for o in c.objects:
            if o.kind is _O.TERRAIN:
                o = replace(o, size=o.size & 15 | self._header.scenery << 4)
            elif o.kind is _O.LEDGE and self._header.style == 2 and self._floating:
                continue
            self._objects.append(replace(o, column=o.column + at))
        self._enemies += [replace(e, column=e.column + at) for e in c.enemies]
        self._column = at + c.length
        self._chunk = c

    def _joint(self, last: Chunk, c: Chunk) -> int:
        """The column at which a piece begins: on the ground with some free space, in the air within a jump."""
        if not self._floating:
            space = self._random.below(4) if c.entry == last.exit else 0
            return self._column + space
        end, before = last.last_support
        first, row = c.first_support
        gap = 1 + self._random.below(2 + self._difficulty // 400) + (1 if row >= before else 0)
        at = self._column - last.length + end + gap - first
        return max(at, self._column - last.length + max(end - first, 0))

    def _bridge_to(self, ending: Chunk) -> None:
        """Where the last piece does not follow by itself, go through pieces whose terrain does."""
        for _ in range(_TRIES):
            if self._fits(ending) or not self._room_for(ending):
                return
            between = [c for c in self._library.middles if self._fits(c)]
            onward = [c for c in between if c.exit == ending.entry] or between
            if not onward:
                return
            self._add(self._eased(self._random.choice(onward)))

    # ---- difficulty ----

    def _eased(self, c: Chunk, opening: bool = False) -> Chunk:
        """A piece with its gaps, blocks and enemies changed a little, as the difficulty asks for."""
        objects = [self._varied(o) for o in c.objects]
        enemies: list[Enemy | Exit] = []
        for e in c.enemies:
            if not isinstance(e, Enemy):
                continue
            needed = is_lift(e) or e.kind.name.startswith("FIREBAR")
            if needed or self._random.chance(350 + self._difficulty * 65 // 100):
                enemies.append(self._other(e))
        open_ground = self._library.style in ("overworld", "underground") and c.entry == c.exit
        uneven = any(o.kind in (_O.HOLE, _O.WATER_HOLE, _O.TERRAIN) for o in objects)
        wanted = self._random.chance(100 + self._difficulty * 6 // 10)
        if open_ground and wanted and not (opening or uneven or enemies):
            kind = self._random.choice(_GROUPS if self._random.chance(self._difficulty) else _WALKERS)
            enemies.append(Enemy(kind, min(c.length // 2 + 2, c.length - 1), FLOOR_ROW))
        return replace(c, objects=tuple(objects), enemies=tuple(enemies))

    def _varied(self, o: Object) -> Object:
        random = self._random
        if o.kind is _O.HOLE and o.size > 1 and self._library.style in ("overworld", "underground"):
            if random.chance(700 - self._difficulty * 6 // 10):
                return replace(o, size=o.size - 1)
        elif o.kind is _O.PIPE and self._library.style == "overworld" and o.row + o.size == FLOOR_ROW - 1:
            size = min(max(o.size + random.below(3) - 1, 1), 3)
            return replace(o, row=FLOOR_ROW - 1 - size, size=size)
        elif o.kind in _CONTENTS and random.chance(250):
            return replace(o, kind=random.choice(_CONTENTS[o.kind]))
        return o

    def _other(self, e: Enemy) -> Enemy:
        """Now and then another enemy of the same sort."""
        if self._random.chance(300):
            for sort in (_WALKERS, _GROUPS):
                if e.kind in sort:
                    return replace(e, kind=self._random.choice(sort), hard=False)
        return e
