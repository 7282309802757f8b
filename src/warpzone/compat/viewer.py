"""A window for frames, by pyglet, which nes-py brings along."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ImageViewer:
    """Shows frames and, if asked to, collects the keys held."""

    def __init__(
        self,
        caption: str,
        height: int,
        width: int,
        monitor_keyboard: bool = False,
        relevant_keys: set[int] | None = None,
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("rendering from python threads is not supported")
        try:
            import pyglet
        except ImportError as error:
            raise ImportError('The "human" render mode needs pyglet: pip install "pyglet<2".') from error
        self.pyglet: Any = pyglet
        self.KEY_MAP = {pyglet.window.key.ENTER: ord("\r"), pyglet.window.key.SPACE: ord(" ")}
        self.caption = caption
        self.height = height
        self.width = width
        self.monitor_keyboard = monitor_keyboard
        self.relevant_keys = relevant_keys
        self._window: Any = None
        self._pressed_keys: list[int] = []
        self._is_escape_pressed = False

    @property
    def is_open(self) -> bool:
        return self._window is not None

    @property
    def is_escape_pressed(self) -> bool:
        return self._is_escape_pressed

    @property
    def pressed_keys(self) -> tuple[int, ...]:
        """The relevant keys held, sorted."""
        return tuple(sorted(self._pressed_keys))

    def _handle_key_event(self, symbol: int, is_press: bool) -> None:
        symbol = self.KEY_MAP.get(symbol, symbol)
        if symbol == self.pyglet.window.key.ESCAPE:
            self._is_escape_pressed = is_press
        elif self.relevant_keys is None or symbol in self.relevant_keys:
            if is_press:
                self._pressed_keys.append(symbol)
            elif symbol in self._pressed_keys:
                self._pressed_keys.remove(symbol)

    def on_key_press(self, symbol: int, modifiers: int) -> None:
        self._handle_key_event(symbol, True)

    def on_key_release(self, symbol: int, modifiers: int) -> None:
        self._handle_key_event(symbol, False)

    def open(self) -> None:
        """Open the window, which may be resized."""
        self._window = self.pyglet.window.Window(
            caption=self.caption, height=self.height, width=self.width, vsync=False, resizable=True
        )
        if self.monitor_keyboard:
            self._window.event(self.on_key_press)
            self._window.event(self.on_key_release)

    def close(self) -> None:
        if self.is_open:
            self._window.close()
            self._window = None

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Show a frame [height, width, 3], opening the window if need be."""
        if frame.ndim != 3:
            raise ValueError("frame should have shape with only 3 dimensions")
        if not self.is_open:
            self.open()
        self._window.clear()
        self._window.switch_to()
        self._window.dispatch_events()
        height, width = frame.shape[:2]
        image = self.pyglet.image.ImageData(width, height, "RGB", frame.tobytes(), pitch=-3 * width)
        image.blit(0, 0, width=self._window.width, height=self._window.height)
        self._window.flip()
