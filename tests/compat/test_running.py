"""Scripts and modules run unchanged, with their workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
from stable_baselines3.common.vec_env import SubprocVecEnv

import warpzone.compat
from warpzone.compat.gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from warpzone.compat.v9.gym_super_mario_bros import make
from warpzone.compat.v9.nes_py.wrappers import JoypadSpace
from warpzone.errors import ConfigError

SCRIPT = """
import multiprocessing, sys
import gym_super_mario_bros, nes_py
from nes_py.wrappers import JoypadSpace
from gym_super_mario_bros.actions import RIGHT_ONLY

def play(start):
    env = JoypadSpace(gym_super_mario_bros.make("SuperMarioBros-1-1-v0"), RIGHT_ONLY)
    env.reset()
    for _ in range(start):
        result = env.step(3)
    return len(result), result[-1]["x_pos"], nes_py.__name__

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(play, (30,))
    print(play(30), there, sys.argv[1:])
    try:
        import gym_super_mario_bros.tests
    except ImportError as error:
        print(error)
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "warpzone.compat", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=250)


def test_a_script_and_its_worker(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run("script.py", "--lr", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    here = "(4, 87, 'warpzone.compat.nes_py')"
    assert done.stdout.splitlines()[0] == f"{here} {here} ['--lr', '3']"
    assert "gym_super_mario_bros.tests is a part of the original package" in done.stdout


def test_a_script_of_the_other_interface_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "five.py").write_text(
        "import gym_super_mario_bros\n"
        "env = gym_super_mario_bros.make('SuperMarioBros-v0')\n"
        "observation, info = env.reset()\n"
        "print(info)\n"
    )
    done = run("--interface", "7", "five.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "python -m warpzone.compat --interface 9 script.py" in done.stderr
    assert "values to unpack" in done.stderr.rpartition("If this script")[0], (
        "the hint comes last, where it is read"
    )
    assert run("--interface", "9", "five.py", cwd=tmp_path).returncode == 0


def test_a_module_on_the_other_interface(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SCRIPT)
    done = run("--interface", "9", "-m", "module", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(5, 87, 'warpzone.compat.v9.nes_py')")


def test_a_script_is_run_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "sibling.py").write_text("")
    (tmp_path / "hidden.py").write_text("")
    (tmp_path / "sub" / "script.py").write_text("""
import atexit, pickle, sys, sibling

class Kept: ...

def at_exit() -> None:
    print(at_exit.__annotations__, type(pickle.loads(pickle.dumps(Kept()))).__module__)

atexit.register(at_exit)
print([__file__, sys.argv, __name__, sys.modules["__main__"].__file__])
try:
    import hidden
except ImportError as error:
    print(error)
sys.exit(7)
""")
    command = [sys.executable, "sub/script.py", "a b"]
    by_python = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=250)
    done = run("sub/script.py", "a b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, by_python.stdout)
    assert "No module named 'hidden'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none.py",), "There is no script none.py."),
        (("--interface", "8", "x.py"), "There is no"),
        (("--interface", "\u00b2", "x.py"), "There is no interface"),
        (("-m",), "-m needs the name of a module."),
        (("-m", "none"), "There is no module none to run"),
        (("-m", "none.at_all"), "There is no module none.at_all to run"),
    ],
)
def test_what_cannot_be_run(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "x.py").write_text("")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(sentence)


def test_installing_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nes_py", pytest)
    with pytest.raises(ConfigError, match="imported already"):
        warpzone.compat.install(7)


def test_installing_twice() -> None:
    twice = """
import os, sys
import warpzone.compat
for _ in range(2):
    warpzone.compat.install(9, children=True)
print(sum("shadow" in folder for folder in sys.path), os.environ["PYTHONPATH"].count("shadow"))
try:
    warpzone.compat.install(7)
except warpzone.ConfigError as error:
    print(sys.modules["nes_py"].__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", twice], capture_output=True, text=True, timeout=250)
    assert done.stdout.startswith("1 1\nwarpzone.compat.v9.nes_py nes_py has been imported already"), (
        done.stderr
    )


def joypad() -> JoypadSpace:
    return JoypadSpace(make("SuperMarioBros-1-1-v0"), SIMPLE_MOVEMENT)


def test_vectors_of_others() -> None:
    processes = SubprocVecEnv([joypad, joypad])
    assert processes.reset().shape == (2, 240, 256, 3)
    assert processes.step([1, 2])[0].shape == (2, 240, 256, 3)
    processes.close()
    workers = gymnasium.vector.AsyncVectorEnv([joypad, joypad])
    assert workers.reset()[0].shape == (2, 240, 256, 3)
    workers.close()
