"""nes-py 8 is patched beside NumPy 2, in memory, and only then."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from warpzone.envs.nes_py.emulators import NesPyFactory
from warpzone.envs.nes_py.patches import installed, needs_patches, patch_nes_py

pytest.importorskip("nes_py")


@pytest.mark.parametrize(
    ("nes_py", "numpy", "needed"),
    [
        ("8.2.1", "2.4.0", True),
        ("8.2.1", "1.26.4", False),
        ("9.0.1", "2.4.0", False),
        ("8.0.0", "2.0.0", True),
    ],
)
def test_only_old_nes_py_beside_new_numpy_needs_patches(nes_py: str, numpy: str, needed: bool) -> None:
    assert needs_patches(nes_py, numpy) is needed


def test_ram_stays_the_emulators_own_memory() -> None:
    emulator = NesPyFactory("1-2")(lambda stage: None)
    ram = emulator.ram
    assert ram is not None
    assert ram.dtype == np.uint8
    assert not ram.flags.owndata
    assert (int(ram[0x075F]), int(ram[0x075C])) == (0, 1)
    clock = ram[0x07F8:0x07FB].copy()
    for _ in range(60):
        emulator.play(0)
    assert ram[0x07F8:0x07FB].tolist() != clock.tolist()
    emulator.close()


def test_patching_twice_is_the_same_as_once() -> None:
    assert patch_nes_py() == patch_nes_py() == needs_patches(installed("nes-py") or "9", np.__version__)


def test_importing_the_old_gym_says_nothing() -> None:
    code = (
        "from warpzone.envs.nes_py.emulators import NesPyFactory; NesPyFactory()(lambda stage: None).close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
