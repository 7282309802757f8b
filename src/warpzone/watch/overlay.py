"""The policy's outputs rendered beside the game: action probabilities as bars, the value and more as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from warpzone.watch.video import Frame

PANEL_WIDTH = 112
LINE_HEIGHT = 10
MARGIN = 4
BAR_LEFT = 58
_BAR_HEIGHT = 7
_BACKGROUND, _TEXT = (16, 16, 24), (224, 224, 224)
_BAR, _CHOSEN = (90, 110, 160), (240, 170, 40)
_FONT = ImageFont.load_default(size=9)


def draw_text(frame: Frame, text: str, x: int, y: int) -> None:
    """Write `text` into `frame` with its top left corner at (x, y), clipped to the frame."""
    image = Image.fromarray(frame)
    ImageDraw.Draw(image).text((x, y), text, fill=_TEXT, font=_FONT, anchor="lt")
    frame[:] = np.asarray(image)


def with_panel(
    frame: Frame,
    *,
    probabilities: Sequence[float] = (),
    action_names: Sequence[str] = (),
    chosen: int | None = None,
    values: Mapping[str, float | str] | None = None,
) -> Frame:
    """The frame with a panel at its right: one bar per action (the chosen one bright), then `values` as text."""
    panel = Image.new("RGB", (PANEL_WIDTH, frame.shape[0]), _BACKGROUND)
    draw = ImageDraw.Draw(panel)
    y = MARGIN
    for action, probability in enumerate(probabilities):
        name = action_names[action] if action < len(action_names) else str(action)
        draw.text((MARGIN, y), name, fill=_TEXT, font=_FONT, anchor="lt")
        length = round(min(max(float(probability), 0.0), 1.0) * (PANEL_WIDTH - MARGIN - BAR_LEFT))
        if length:
            bar = (BAR_LEFT, y, BAR_LEFT + length - 1, y + _BAR_HEIGHT - 1)
            draw.rectangle(bar, fill=_CHOSEN if action == chosen else _BAR)
        y += LINE_HEIGHT
    y += MARGIN
    for name, value in (values or {}).items():
        shown = value if isinstance(value, str) else f"{value:.3f}"
        draw.text((MARGIN, y), f"{name} {shown}", fill=_TEXT, font=_FONT, anchor="lt")
        y += LINE_HEIGHT
    return np.concatenate([frame, np.asarray(panel)], axis=1)
