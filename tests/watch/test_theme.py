"""Text on the pages can be read in both themes: contrast of at least 4.5 to 1 (WCAG AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warpzone.watch

CSS = (Path(warpzone.watch.__file__).parent / "panel" / "static" / "panel.css").read_text()
THEMES = {
    theme: dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})\b", block))
    for block, theme in re.findall(r":root\{(color-scheme:(\w+);[^}]*)\}", CSS)
}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:4])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_that_of_wcag() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_has_enough_contrast(theme: str) -> None:
    colours = THEMES[theme]
    inks = {"text", "dim", "accent", "blue", "gold", "red", "violet", "teal"}
    assert inks < colours.keys()
    measured = {
        (ink, ground): contrast(colours[ink], colours[ground]) for ink in inks for ground in ("bg", "card")
    }
    assert {pair: round(value, 2) for pair, value in measured.items() if value < 4.5} == {}
