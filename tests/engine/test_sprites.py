"""Sprite 0 and sprite overflow: where and when their flags rise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.engine.assembler import SYNC, at_dot, delay, play

ON_AT = (10, 100)
"""Line and dot at which the programs switch drawing on: behind the pre-render line, so that no dot is dropped."""


def dots_behind_blank(line: int, dot: int) -> int:
    """From the rise of the flag (line 241, dot 1) to a dot of the next picture."""
    return (262 - 241 + line) * 341 + dot - 1


def program(
    sprites: Sequence[tuple[int, int, int, int]], line: int, dot: int, mask: int, ctrl: int, tile: int
) -> str:
    """Shows `sprites` (y, tile, attributes, x) over a screen full of `tile`; keeps $2002 as read at a dot in $10."""
    oam = [byte for sprite in sprites for byte in sprite] + [0xF8] * (256 - 4 * len(sprites))
    table = "\n".join(".byte " + ",".join(map(str, oam[i : i + 16])) for i in range(0, 256, 16))
    again = SYNC.replace("sync_vblank", "sync2").replace("wait_for_it", "wait2").replace("_try", "_try2")
    again = again.replace("try_again", "try_again2")
    between = (dots_behind_blank(line, dot) - dots_behind_blank(*ON_AT)) // 3
    return f"""
    reset: ldx #0
    copy: lda sprites,x
        sta $0200,x
        inx
        bne copy
        lda #$20
        sta $2006
        stx $2006
        ldy #8
        lda #{tile}
    fill: sta $2007
        inx
        bne fill
        dey
        bne fill
        lda #$23
        sta $2006
        lda #$c0
        sta $2006
        lda #0
        ldx #64
    attributes: sta $2007
        dex
        bne attributes
        {SYNC}
        sta $2003
        lda #2
        sta $4014
        {again}
        {at_dot(dots_behind_blank(line, dot), 4, lead=between)}
        lda #{ctrl}
        sta $2000
        lda #{mask}
        sta $2001
        {delay(between - 12)}
        lda $2002
        sta $10
    done: jmp done
    sprites: {table}"""


def flag(bit: int, sprites: Sequence[tuple[int, int, int, int]], line: int, dot: int, mask: int = 0x1E, ctrl: int = 0,
         tile: int = 1) -> bool:  # fmt: skip
    return bool(play(program(sprites, line, dot, mask, ctrl, tile), frames=70).ram[0x10] & bit)


def hit(*args: object, **options: int) -> bool:
    return flag(0x40, *args, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "mask", "pixel"),
    [
        (0, 0x1E, 0),
        (100, 0x1E, 100),
        (254, 0x1E, 254),
        (5, 0x18, 8),
        (5, 0x1A, 8),
        (5, 0x1C, 8),
        (8, 0x18, 8),
    ],
    ids=[
        "left edge",
        "middle",
        "right but one",
        "both clipped",
        "sprites clipped",
        "background clipped",
        "beside clip",
    ],
)
def test_the_hit_shows_in_the_dot_behind_the_first_pixel_that_both_fill(
    x: int, mask: int, pixel: int
) -> None:
    sprites = [(99, 1, 0, x)]  # its first line is 100
    # Pixel x is put out in dot x + 1; a read sees the flag once that dot is over.
    assert not hit(sprites, 100, pixel + 1, mask=mask)
    assert hit(sprites, 100, pixel + 2, mask=mask)


@pytest.mark.parametrize(
    ("sprite", "options"),
    [((99, 1, 0, 255), {}), ((99, 1, 0, 0), {"mask": 0x18}), ((99, 1, 0, 0), {"mask": 0x1C}),
     ((99, 0, 0, 100), {}), ((99, 1, 0, 100), {"tile": 0}), ((99, 1, 0, 100), {"mask": 0x16}),
     ((99, 1, 0, 100), {"mask": 0x0E}), ((239, 1, 0, 100), {}), ((254, 1, 0, 100), {})],
    ids=["column 255", "clipped", "background clipped", "empty sprite", "empty background", "no background",
         "no sprites", "below the picture", "far below"],
)  # fmt: skip
def test_there_is_no_hit(sprite: tuple[int, int, int, int], options: dict[str, int]) -> None:
    assert not hit([sprite], 239, 330, **options)


def test_the_last_line_can_hit() -> None:
    assert hit([(238, 1, 0, 100)], 239, 110)


def test_a_hit_ignores_priority_colours_and_other_sprites_in_front() -> None:
    assert hit([(99, 1, 0x23, 100), (99, 1, 0, 100)], 100, 110)


def test_only_sprite_zero_hits() -> None:
    assert not hit([(99, 0, 0, 100), (99, 1, 0, 100)], 239, 330)


@pytest.mark.parametrize(
    ("attributes", "line", "pixel"), [(0x00, 100, 100), (0x40, 100, 107), (0x80, 107, 100), (0xC0, 107, 107)]
)
def test_flips_move_the_pixel_that_hits(attributes: int, line: int, pixel: int) -> None:
    sprites = [(99, 2, attributes, 100)]  # tile 2 has its only pixel at the top left
    assert not hit(sprites, line, pixel + 1)
    assert hit(sprites, line, pixel + 2)


def test_a_tall_sprite_hits_in_its_second_tile() -> None:
    # Sixteen lines high, tile 0 above (empty) and tile 1 below (solid).
    sprites = [(99, 0, 0, 100)]
    assert not hit(sprites, 108, 101, ctrl=0x20)
    assert hit(sprites, 108, 102, ctrl=0x20)


def test_the_hit_lasts_until_the_pre_render_line() -> None:
    sprites = [(99, 1, 0, 100)]
    assert hit(sprites, 239, 330)
    assert hit(sprites, 260, 340)
    assert hit(sprites, 261, 1)
    assert not hit(sprites, 261, 2)


def overflow(sprites: Sequence[tuple[int, int, int, int]], line: int, dot: int, **options: int) -> bool:
    return flag(0x20, sprites, line, dot, **options)


def crowd(count: int, y: int = 99) -> list[tuple[int, int, int, int]]:
    return [(y, 1, 0, 8 * i) for i in range(count)]


def test_nine_sprites_on_a_line_overflow_and_eight_do_not() -> None:
    assert not overflow(crowd(8), 239, 330)
    assert overflow(crowd(9), 239, 330)


def test_overflow_counts_with_only_one_layer_shown_and_not_with_none() -> None:
    assert overflow(crowd(9), 239, 330, mask=0x08)
    assert overflow(crowd(9), 239, 330, mask=0x10)
    assert not overflow(crowd(9), 239, 330, mask=0x00)


def test_sprites_below_the_picture_do_not_overflow() -> None:
    assert not overflow(crowd(9, y=239 + 1), 261, 1)
    assert overflow(crowd(9, y=239), 261, 1)


@pytest.mark.parametrize(("before", "dot"), [(0, 130), (1, 132), (20, 170), (55, 240)])
def test_overflow_rises_when_the_ninth_sprite_is_looked_at(before: int, dot: int) -> None:
    # Two dots for a sprite that is elsewhere, eight for one that is copied; looking begins in dots 65 and 66 of the
    # line above the one shown.
    sprites = [(0xF8, 0, 0, 0)] * before + crowd(9)
    assert not overflow(sprites, 99, dot)
    assert overflow(sprites, 99, dot + 1)


def test_behind_eight_sprites_the_search_looks_at_the_wrong_bytes() -> None:
    # Sprite 9 is compared by its tile number, 10 by its attributes, 11 by its position, 12 by its line again.
    decoys = [(0xF8, 0, 0, 0), (0xF8, 99, 0, 0)]
    assert overflow(crowd(8) + decoys, 239, 330)
    assert not overflow([*crowd(8), (0xF8, 99, 0, 0)], 239, 330)
    assert not overflow([*crowd(8), (0xF8, 0, 0, 0), (99, 0, 0, 0)], 239, 330)
    assert overflow([*crowd(8), *[(0xF8, 0, 0, 0)] * 4, (99, 0, 0, 0)], 239, 330)


def test_tall_sprites_overflow_on_sixteen_lines() -> None:
    low = [(99, 0, 0, 8 * i) for i in range(8)] + [(114, 0, 0, 80)]
    assert overflow(low, 239, 330, ctrl=0x20)
    assert not overflow(low, 239, 330)
