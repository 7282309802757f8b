"""The objects and enemies that the game's area data can name, and the bytes it has for them."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class AreaType(Enum):
    """What an area is made of. The value is the game's number."""

    WATER = 0
    GROUND = 1
    UNDERGROUND = 2
    CASTLE = 3


class Family(Enum):
    """How the two bytes of an object are laid out."""

    SINGLE = "single"
    """Rows 0 to 11, no size."""
    SIZED = "sized"
    """Rows 0 to 11, with a length or height."""
    FLOOR = "floor"
    """Row 12: the game knows the height; with a length."""
    SPECIAL = "special"
    """Row 13: neither row nor size."""
    SETTING = "setting"
    """Row 14: changes what the area is made of from here on."""
    TALL = "tall"
    """Row 15: the game knows the height; with a size."""
    PAGE = "page"
    """Row 13: later objects are counted from this page on."""


class ObjectKind(str, Enum):
    """An object of an area."""

    __str__ = str.__str__  # as StrEnum, which Python 3.10 lacks

    QUESTION_POWERUP = "question block with a power-up"
    QUESTION_COIN = "question block with a coin"
    HIDDEN_COIN = "hidden block with a coin"
    HIDDEN_1UP = "hidden block with a 1-up"
    BRICK_POWERUP = "brick with a power-up"
    BRICK_VINE = "brick with a vine"
    BRICK_STAR = "brick with a star"
    BRICK_COINS = "brick with coins"
    BRICK_1UP = "brick with a 1-up"
    WATER_PIPE = "water pipe"
    USED_BLOCK = "used block"
    SPRING = "spring"
    LEDGE = "ledge"
    """A tree, a mushroom or a cannon, by the style of the area."""
    BRICKS = "row of bricks"
    BLOCKS = "row of blocks"
    COINS = "row of coins"
    BRICK_COLUMN = "column of bricks"
    BLOCK_COLUMN = "column of blocks"
    PIPE = "pipe"
    """Sizes 8 to 15 can be entered where an exit says so."""
    HOLE = "hole"
    PULLEY_ROPE = "pulley rope"
    BRIDGE_HIGH = "high bridge"
    BRIDGE = "bridge"
    BRIDGE_LOW = "low bridge"
    WATER_HOLE = "hole with water"
    QUESTION_ROW_HIGH = "high row of question blocks"
    QUESTION_ROW = "row of question blocks"
    INTRO_PIPE = "intro pipe"
    FLAGPOLE = "flagpole"
    AXE = "axe"
    CHAIN = "chain"
    CASTLE_BRIDGE = "castle bridge"
    SCROLL_STOP_WARP = "scroll stop at a warp zone"
    SCROLL_STOP_SECRET = "scroll stop (second kind)"
    SCROLL_STOP = "scroll stop"
    FLYING_CHEEPS = "flying cheep-cheeps from here on"
    BULLETS = "bullet bills or swimming cheep-cheeps from here on"
    FRENZY_END = "end of the cheep-cheeps or bullets"
    LOOP = "loop of a maze"
    TERRAIN = "terrain"
    """Size: number of the terrain, 0 to 15, and 16 times that of the scenery, 0 to 3."""
    BACKDROP = "backdrop"
    """Size 0 to 3: foreground; 4 to 7: colours."""
    ROPE = "endless rope"
    BALANCE_ROPE = "rope of a balance"
    CASTLE = "castle"
    STAIRS = "staircase"
    EXIT_PIPE = "exit pipe"
    FLAG_BALLS = "flag balls"
    PAGE = "page"


class Layout(NamedTuple):
    """Where a kind stands in the bytes: its code there, and its largest size."""

    family: Family
    code: int
    largest: int


def _layouts() -> dict[ObjectKind, Layout]:
    kinds = list(ObjectKind)
    start = {kind: i for i, kind in enumerate(kinds)}
    table: dict[ObjectKind, Layout] = {}

    def add(family: Family, first: ObjectKind, last: ObjectKind, code: int, largest: int) -> None:
        for i, kind in enumerate(kinds[start[first] : start[last] + 1]):
            table[kind] = Layout(family, code + i, largest)

    add(Family.SINGLE, ObjectKind.QUESTION_POWERUP, ObjectKind.SPRING, 0, 0)
    add(Family.SIZED, ObjectKind.LEDGE, ObjectKind.PIPE, 1, 15)
    add(Family.FLOOR, ObjectKind.HOLE, ObjectKind.QUESTION_ROW, 0, 15)
    add(Family.SPECIAL, ObjectKind.INTRO_PIPE, ObjectKind.LOOP, 0, 0)
    add(Family.SETTING, ObjectKind.TERRAIN, ObjectKind.TERRAIN, 0, 63)
    add(Family.SETTING, ObjectKind.BACKDROP, ObjectKind.BACKDROP, 4, 7)
    add(Family.TALL, ObjectKind.ROPE, ObjectKind.FLAG_BALLS, 0, 15)
    add(Family.PAGE, ObjectKind.PAGE, ObjectKind.PAGE, 0, 0)
    return table


LAYOUTS = _layouts()
OBJECT_OF = {(layout.family, layout.code): kind for kind, layout in LAYOUTS.items()}
"""The kind by family and code."""
ROWS = {Family.FLOOR: 12, Family.SPECIAL: 13, Family.PAGE: 13, Family.SETTING: 14, Family.TALL: 15}
"""The row that stands for a family; rows 0 to 11 are rows of the screen."""


class EnemyKind(Enum):
    """An enemy, a lift or a group of enemies. The value is the game's number."""

    GREEN_KOOPA = 0x00
    BUZZY_BEETLE = 0x02
    RED_KOOPA = 0x03
    HAMMER_BRO = 0x05
    GOOMBA = 0x06
    BLOOPER = 0x07
    GREY_CHEEP = 0x0A
    RED_CHEEP = 0x0B
    PODOBOO = 0x0C
    PIRANHA_PLANT = 0x0D
    GREEN_PARATROOPA = 0x0E
    """Hops."""
    RED_PARATROOPA = 0x0F
    GREEN_PARATROOPA_FLYING = 0x10
    LAKITU = 0x11
    SPINY = 0x12
    FLYING_CHEEPS = 0x14
    BOWSER_FLAME = 0x15
    FIREWORKS = 0x16
    BULLETS = 0x17
    FRENZY_END = 0x18
    FIREBAR = 0x1B
    FIREBAR_FAST = 0x1C
    FIREBAR_REVERSE = 0x1D
    FIREBAR_REVERSE_FAST = 0x1E
    FIREBAR_LONG = 0x1F
    BALANCE_LIFT = 0x24
    LIFT_UP_DOWN = 0x25
    LIFT_UP = 0x26
    LIFT_DOWN = 0x27
    LIFT_SIDEWAYS = 0x28
    LIFT_FALLING = 0x29
    LIFT_RIGHT = 0x2A
    SMALL_LIFT_UP = 0x2B
    SMALL_LIFT_DOWN = 0x2C
    BOWSER = 0x2D
    WARP_ZONE = 0x34
    RETAINER = 0x35
    """Who waits behind the bridge of a castle."""
    TWO_GOOMBAS = 0x37
    THREE_GOOMBAS = 0x38
    TWO_GOOMBAS_HIGH = 0x39
    THREE_GOOMBAS_HIGH = 0x3A
    TWO_KOOPAS = 0x3B
    THREE_KOOPAS = 0x3C
    TWO_KOOPAS_HIGH = 0x3D
    THREE_KOOPAS_HIGH = 0x3E
    PAGE = -1
    """Later enemies are counted from this page on."""


ENEMY_OF = {kind.value: kind for kind in EnemyKind}
