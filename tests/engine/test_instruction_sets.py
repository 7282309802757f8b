"""One build has the vector loops for several instruction sets; all of them give the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warpzone.engine._native import instruction_sets, net_kernels

PLAY = """
import hashlib
import numpy as np
import warpzone

found = hashlib.sha256()
for options in ({}, {"max_pool": True, "crop_hud": True}, {"observation": "rgb", "size": (61, 97)}):
    envs = warpzone.MarioVectorEnv(4, stages=["1-1", "1-2", "4-4"], threads=1, seed=3, **options)
    dice = np.random.default_rng(0)
    envs.reset(seed=3)
    for _ in range(60):
        found.update(envs.step(dice.integers(7, size=4))[0].tobytes())
    found.update(envs.screen(0).tobytes())
    envs.close()
print(found.hexdigest())
"""


def play(instruction_set: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WARPZONE_SIMD": instruction_set}
    return subprocess.run(
        [sys.executable, "-c", PLAY],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_instruction_set_gives_the_same_bytes() -> None:
    sets = instruction_sets()
    assert set(net_kernels()) <= set(sets)
    seen = {name: play(name) for name in sets}
    for name, done in seen.items():
        assert done.returncode == 0, f"{name}: {done.stderr[-2000:]}"
    assert len({done.stdout for done in seen.values()}) == 1
    assert {"baseline", "neon"} & set(sets)


def test_an_instruction_set_that_is_not_there_is_refused_in_a_sentence() -> None:
    done = play("mmx")
    assert done.returncode != 0
    assert "ConfigError: WARPZONE_SIMD is 'mmx', which this processor can't run: choose one of" in done.stderr


@pytest.mark.parametrize("name", ["baseline", "neon", "dotprod"])
def test_the_net_follows_the_same_variable(name: str) -> None:
    if name not in instruction_sets():
        pytest.skip(f"this processor has no {name}")
    code = "from warpzone.engine._native import Net; print(Net((4, 84, 84), [(8, 8, 4)], [16], 7).kernels)"
    environment = {**os.environ, "WARPZONE_SIMD": name}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip() == ("neon" if name == "dotprod" else name), done.stderr


@pytest.mark.long
def test_identity_bench_compares_every_way_and_continues(tmp_path: Path) -> None:
    bench, out = Path(__file__).resolve().parents[2] / "bench" / "identity.py", tmp_path / "identity.json"

    def play(frames: int) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, str(bench), "--frames", str(frames), "--out", str(out)],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, Any] = json.loads(out.read_text())
        assert json.loads(done.stdout) == found
        return found

    first = play(1600)
    assert first["frames"] == {"random": 1600}
    assert len(first["vectors"]["digests"]) == 2 * len(instruction_sets())
    assert len(set(first["vectors"]["digests"].values())) == 1
    more = play(2400)
    assert more["frames"] == {"random": 2400}
    assert more["digests"]["random"] != first["digests"]["random"]
    assert more["vectors"]["frames"] == 2400
    assert more["vectors"]["digests"] != first["vectors"]["digests"]
