"""The window of render mode "human", on a virtual display, and what is said where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("gym")
pytest.importorskip("tkinter")

SHOW = """
import gym_super_mario_bros, numpy, sys
from PIL import ImageGrab
def shown(width=256, height=240):
    return numpy.asarray(ImageGrab.grab(bbox=(0, 0, width, height)).convert("RGB"))
env = gym_super_mario_bros.make("SuperMarioBros-1-1-v0")
env.reset()
for _ in range(20):
    frame, *_ = env.step(128)
    assert env.render() is None
window = env.unwrapped.viewer._window
assert window.title() == "SuperMarioBros-1-1-v0"
assert numpy.array_equal(shown(), env.unwrapped.screen)
window.geometry("512x480")
window.update()
env.step(128)
env.render(mode="human")
assert numpy.array_equal(shown(512, 480)[::2, ::2], env.unwrapped.screen)
window.tk.call(*window.tk.splitlist(window.protocol("WM_DELETE_WINDOW")))  # closed by hand: it stays closed
env.render()
assert not env.unwrapped.viewer.is_open
env.close()
env = gym_super_mario_bros.make("SuperMarioBros-1-2-v0", apply_api_compatibility=True, render_mode="human")
env.reset()
env.step(0)
assert numpy.array_equal(shown(), env.unwrapped.screen)
env.close()
print("through")
"""

PLAY = """
import gym_super_mario_bros
from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from nes_py.app.play_human import play_human
from nes_py.wrappers import JoypadSpace
import nes_py._image_viewer as viewers
env = JoypadSpace(gym_super_mario_bros.make("SuperMarioBros-1-1-v0"), SIMPLE_MOVEMENT)
actions, windows = [], []
open_window = viewers.ImageViewer.open
def kept(self):
    open_window(self)
    windows.append(self._window)
    self._window.focus_force()
viewers.ImageViewer.open = kept
keys = {2: "<KeyPress-d>", 4: "<KeyPress-o>", 6: "<KeyRelease-o>", 8: "<KeyRelease-d>", 10: "<KeyPress-Escape>"}
def callback(state, action, reward, done, next_state):
    actions.append(action)
    if len(actions) in keys:
        windows[-1].event_generate(keys[len(actions)])
play_human(env, callback)
assert set(actions) == {0, 1, 2} and actions[0] == 0, actions
assert 10 <= len(actions) <= 13, actions
print("through")
"""


def run(script: str, folder: Path, display: str | None) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "warpzone.compat", "script.py"],
        cwd=folder,
        env=environment if display is None else {**environment, "DISPLAY": display},
        capture_output=True,
        text=True,
        timeout=250,
    )


@pytest.fixture
def display() -> Iterator[str]:
    if shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb: apt install xvfb")
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    yield ":" + server.stdout.readline().strip()
    server.terminate()
    server.wait()


@pytest.mark.parametrize("script", [SHOW, PLAY], ids=["shown", "played"])
def test_a_window(script: str, display: str, tmp_path: Path) -> None:
    if script is SHOW:
        pytest.importorskip("PIL")
    done = run(script, tmp_path, display)
    assert done.stdout.endswith("through\n"), done.stderr


def test_without_a_display(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("a display is not a variable of the environment here")
    done = run(SHOW, tmp_path, None)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("warpzone.errors.ConfigError: A window needs a display")
    command = [
        sys.executable,
        "-m",
        "warpzone.compat",
        "-m",
        "gym_super_mario_bros",
        "-m",
        "random",
        "-s",
        "3",
    ]
    played = subprocess.run(
        command,
        env={name: value for name, value in os.environ.items() if name != "DISPLAY"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert played.returncode == 2
    assert played.stderr.splitlines()[-1].startswith("A window needs a display")
