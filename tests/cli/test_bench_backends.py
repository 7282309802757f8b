"""`warpzone bench backends` measures what it says, and refuses what does not run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from warpzone.cli import bench_backends
from warpzone.cli.bench_backends import BACKENDS, run
from warpzone.envs import vector
from warpzone.errors import ConfigError


def test_every_round_measures_every_backend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        bench_backends, "BACKENDS", {"native": BACKENDS["native"], "other": BACKENDS["native"]}
    )
    assert run(["--num-envs", "1", "--steps", "2", "--rounds", "2", "--as-json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert list(results) == ["native", "other"]
    for measured in results.values():
        assert list(measured) == ["construct_s", "reset_s", "decisions_per_s"]
        assert all(len(values) == 2 and min(values) > 0 for values in measured.values())


def test_environments_that_do_not_move_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen:
        def __init__(self, *args: object, **options: object) -> None:
            pass

        def reset(self, seed: int) -> tuple[None, dict[str, np.ndarray]]:
            return None, {"x_pos": np.array([40])}

        def step(self, actions: np.ndarray) -> tuple[None, None, None, None, dict[str, np.ndarray]]:
            return None, None, None, None, {"x_pos": np.array([40])}

        def close(self) -> None:
            pass

    monkeypatch.setattr(vector, "MarioVectorEnv", Frozen)
    with pytest.raises(RuntimeError, match="moved nobody"):
        run(["--num-envs", "1", "--steps", "1"])


def test_settings_below_one_are_refused() -> None:
    with pytest.raises(ConfigError):
        run(["--rounds", "0"])
