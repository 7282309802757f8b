"""A window for frames, by tkinter of Python's standard library."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.errors import ConfigError

KEY_NAMES = {"Return": ord("\r"), "KP_Enter": ord("\r"), "space": ord(" ")}
"""Codes of the keys that Tk has a word for; a letter's is that of the small letter."""


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
        self.caption = caption
        self.height = height
        self.width = width
        self.monitor_keyboard = monitor_keyboard
        self.relevant_keys = relevant_keys
        self._window: Any = None
        self._picture: Any = None
        self._pressed_keys: list[int] = []
        self._is_escape_pressed = False
        self._dismissed = False

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

    def _handle_key_event(self, name: str, is_press: bool) -> None:
        if name == "Escape":
            self._is_escape_pressed = is_press
            return
        key = KEY_NAMES.get(name, ord(name.lower()) if len(name) == 1 else -1)
        if self.relevant_keys is not None and key not in self.relevant_keys:
            return
        # A key held is reported again and again.
        if is_press and key not in self._pressed_keys:
            self._pressed_keys.append(key)
        elif not is_press and key in self._pressed_keys:
            self._pressed_keys.remove(key)

    def open(self) -> None:
        """Open the window, which may be resized. ConfigError where there is no tkinter or no display."""
        try:
            import tkinter
        except ImportError as error:
            raise ConfigError(
                "A window needs tkinter, which this Python lacks: install it (on Debian: apt install python3-tk), "
                'or take the frames of render_mode="rgb_array".'
            ) from error
        try:
            window = tkinter.Tk(className=self.caption)
        except tkinter.TclError as error:
            raise ConfigError(
                f"A window needs a display, and there is none ({error}): run this on a desktop or under xvfb-run, "
                'or take the frames of render_mode="rgb_array".'
            ) from error
        window.title(self.caption)
        window.geometry(f"{self.width}x{self.height}")
        window.protocol("WM_DELETE_WINDOW", self._dismiss)
        self._picture = tkinter.Label(window, borderwidth=0)
        # Laid over the window, so that a picture does not hold the window at its own size.
        self._picture.place(x=0, y=0)
        if self.monitor_keyboard:
            window.bind("<KeyPress>", lambda event: self._handle_key_event(event.keysym, True))
            window.bind("<KeyRelease>", lambda event: self._handle_key_event(event.keysym, False))
        window.update()
        self._window = window

    def _dismiss(self) -> None:
        """The user has closed the window: it stays closed, and play by hand ends."""
        self._dismissed = self._is_escape_pressed = True
        self.close()

    def close(self) -> None:
        """Close the window, if it is open; the next frame opens another."""
        if self._window is not None:
            self._window.destroy()
            self._window = self._picture = None

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Show a frame [height, width, 3] in the window's size, opening the window if need be."""
        import tkinter

        if frame.ndim != 3:
            raise ValueError("frame should have shape with only 3 dimensions")
        if self._dismissed:
            return
        if self._window is None:
            self.open()
        height, width = self._window.winfo_height(), self._window.winfo_width()
        rows = np.arange(height) * frame.shape[0] // height
        columns = np.arange(width) * frame.shape[1] // width
        pixels = frame if frame.shape[:2] == (height, width) else frame[rows[:, None], columns]
        ppm = b"P6 %d %d 255\n" % (width, height) + pixels.tobytes()
        image = tkinter.PhotoImage(master=self._window, data=ppm, format="ppm")
        self._picture.configure(image=image)
        self._picture.image = image  # Tk keeps no reference of its own
        self._window.update()
