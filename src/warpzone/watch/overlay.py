"""The policy's outputs rendered beside the game: action probabilities as bars, the value and more as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from warpzone.watch.video import Frame

PANEL_WIDTH = 112
_GLYPH_HEIGHT, _GLYPH_WIDTH = 5, 3
_LINE_HEIGHT = 8
_MARGIN = 4
_BAR_LEFT = 56
_BACKGROUND = np.array([16, 16, 24], np.uint8)
_TEXT = np.array([224, 224, 224], np.uint8)
_BAR = np.array([90, 110, 160], np.uint8)
_CHOSEN = np.array([240, 170, 40], np.uint8)

# Five rows of three pixels each, top to bottom, as octal digits: 7 is a full row, 5 its two ends.
_GLYPHS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717", "6": "74757",
    "7": "71111", "8": "75757", "9": "75717", "A": "25755", "B": "65656", "C": "34443", "D": "65556",
    "E": "74647", "F": "74644", "G": "34553", "H": "55755", "I": "72227", "J": "11152", "K": "55655",
    "L": "44447", "M": "57755", "N": "65555", "O": "25552", "P": "65644", "Q": "25563", "R": "65655",
    "S": "34216", "T": "72222", "U": "55557", "V": "55552", "W": "55775", "X": "55255", "Y": "55222",
    "Z": "71247", "+": "02720", "-": "00700", ".": "00002", ":": "02020", "%": "51245", "/": "11244",
    "_": "00007", "(": "24442", ")": "21112", "=": "07070", ",": "00024", "!": "22202",
}  # fmt: skip


def draw_text(frame: Frame, text: str, x: int, y: int) -> None:
    """Write `text` into `frame` with its top left corner at (x, y); what does not fit is clipped."""
    height, width = frame.shape[:2]
    for character in text.upper():
        if x + _GLYPH_WIDTH > width or y + _GLYPH_HEIGHT > height:
            return
        for row, bits in enumerate(_GLYPHS.get(character, "00000")):
            for column in range(_GLYPH_WIDTH):
                if int(bits) >> (_GLYPH_WIDTH - 1 - column) & 1:
                    frame[y + row, x + column] = _TEXT
        x += _GLYPH_WIDTH + 1


def with_panel(
    frame: Frame,
    *,
    probabilities: Sequence[float] = (),
    action_names: Sequence[str] = (),
    chosen: int | None = None,
    values: Mapping[str, float | str] | None = None,
) -> Frame:
    """The frame with a panel at its right: one bar per action (the chosen one bright), then `values` as
    text.
    """
    height = frame.shape[0]
    panel = np.empty((height, PANEL_WIDTH, 3), np.uint8)
    panel[:] = _BACKGROUND
    y = _MARGIN
    for action, probability in enumerate(probabilities):
        name = action_names[action] if action < len(action_names) else str(action)
        draw_text(panel[:, : _BAR_LEFT - 2], name, _MARGIN, y)
        share = min(max(float(probability), 0.0), 1.0)
        length = round(share * (PANEL_WIDTH - _MARGIN - _BAR_LEFT))
        bar = _CHOSEN if action == chosen else _BAR
        panel[y : y + _GLYPH_HEIGHT, _BAR_LEFT : _BAR_LEFT + length] = bar
        y += _LINE_HEIGHT
    y += _MARGIN
    for name, value in (values or {}).items():
        shown = value if isinstance(value, str) else f"{value:.3f}"
        draw_text(panel, f"{name} {shown}", _MARGIN, y)
        y += _LINE_HEIGHT
    return np.concatenate([frame, panel], axis=1)
