"""`warpzone bench backends` measures what it says, and refuses what does not run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from warpzone.cli import bench_backends
from warpzone.cli.bench_backends import BACKENDS, measure, run
from warpzone.errors import ConfigError


def test_the_native_engine_is_measured() -> None:
    measured = measure(BACKENDS["native"], 2, 3)
    assert set(measured) == {"construct_s", "reset_s", "decisions_per_s"}
    assert all(value > 0 for value in measured.values())


def test_every_round_measures_every_backend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        bench_backends, "BACKENDS", {"native": BACKENDS["native"], "other": BACKENDS["native"]}
    )
    assert run(["--num-envs", "1", "--steps", "2", "--rounds", "2", "--as-json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert {name: len(values["decisions_per_s"]) for name, values in results.items()} == {
        "native": 2,
        "other": 2,
    }


def test_environments_that_do_not_move_are_not_timed() -> None:
    class Frozen:
        def reset(self, seed: int) -> tuple[None, dict[str, np.ndarray]]:
            return None, {"x_pos": np.array([40])}

        def step(self, actions: np.ndarray) -> tuple[None, None, None, None, dict[str, np.ndarray]]:
            return None, None, None, None, {"x_pos": np.array([40])}

        def close(self) -> None:
            pass

    with pytest.raises(RuntimeError, match="moved nobody"):
        measure(lambda num_envs: Frozen(), 1, 1)


def test_settings_below_one_are_refused() -> None:
    with pytest.raises(ConfigError):
        run(["--rounds", "0"])
