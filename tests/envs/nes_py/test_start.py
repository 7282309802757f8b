"""A start-up that can't hang: every stage can fail in every way, and it is said which and how."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.envs.nes_py.toy_emulators import Faulty, Toy
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig, BackendError
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.envs.nes_py.worker import read_start_log
from warpzone.errors import ConfigError

VIEW = ViewConfig(frame_stack=1, size=(8, 8))


def start(
    tmp_path: Path, factory: Any, said: list[str], num_envs: int = 1, **options: Any
) -> BackendVectorEnv:
    backend = BackendConfig(
        backend="nes-py", async_env=True, env_diagnostics_dir=str(tmp_path / "diagnostics"),
        **{"env_reset_timeout": 60.0, **options},
    )  # fmt: skip
    return BackendVectorEnv(num_envs, view=VIEW, backend=backend, factory=factory, say=said.append)


def fails(tmp_path: Path, at: str, fault: str, timeout_s: float = 60.0) -> str:
    """What is said of a strict run whose only worker fails at its start."""
    said: list[str] = []
    factory = Faulty(at, fault, str(tmp_path / "counter"))
    with pytest.raises(BackendError, match="Worker 0 did not start in 1 attempts"):
        start(tmp_path, factory, said, env_retries=0, strict_env=True, env_reset_timeout=timeout_s)
    (warning,) = [line for line in said if line.startswith("[env][warn] worker 0")]
    assert f"last stage mark: {at}" in warning
    return warning


@pytest.mark.parametrize(
    ("at", "fault", "words"),
    [
        ("import", "error", "failed: ModuleNotFoundError: No module named 'package_that_is_not_installed'"),
        ("make", "missing_rom", "failed: ValueError: rom_path points to non-existent file: mario.nes."),
        ("patch", "crash", "died (killed by signal 6)"),
        ("make", "crash", "died (killed by signal 6)"),
    ],
)
def test_a_failed_start_is_named_with_its_stage_and_stops_a_strict_run(
    tmp_path: Path, at: str, fault: str, words: str
) -> None:
    assert words in fails(tmp_path, at, fault)
    if fault in ("error", "missing_rom"):
        assert read_start_log(tmp_path / "diagnostics", 0)[-1]["mark"] == "error"


def test_a_start_that_hangs_is_named_with_its_stage_and_stops_a_strict_run(tmp_path: Path) -> None:
    # Both at once, as each takes its whole limit.
    stages = ("make", "import")
    for at in stages:
        (tmp_path / at).mkdir()
    with ThreadPoolExecutor(len(stages)) as pool:
        warnings = [pool.submit(fails, tmp_path / at, at, "hang", 30.0) for at in stages]
        for warning in warnings:
            assert "is stuck: no answer for" in warning.result()
            assert "_fail" in warning.result()


def test_a_worker_that_fails_once_is_replaced(tmp_path: Path) -> None:
    said: list[str] = []
    envs = start(tmp_path, Faulty("make", "crash", str(tmp_path / "counter"), times=1), said, num_envs=2)
    assert envs.mode == "async"
    _, info = envs.reset(seed=0)
    envs.close()
    assert info["x_pos"].tolist() == [40, 40]
    assert sum("died (killed by signal 6)" in line for line in said) == 1
    assert sum(line.startswith("[env] constructing env") for line in said) == 2


def test_workers_that_never_start_are_followed_by_this_process_with_one_warning(tmp_path: Path) -> None:
    said: list[str] = []
    # Two attempts of the only worker fail; the third call is ours.
    factory = Faulty("make", "missing_rom", str(tmp_path / "counter"), times=2)
    envs = start(tmp_path, factory, said, env_retries=1)
    assert envs.mode == "sync"
    _, info = envs.reset(seed=0)
    envs.close()
    assert info["x_pos"].tolist() == [40]
    assert sum("Continuing with all environments in this process" in line for line in said) == 1


def test_a_slow_start_within_the_deadline_is_no_failure(tmp_path: Path) -> None:
    said: list[str] = []
    envs = start(tmp_path, Faulty("make", "slow", str(tmp_path / "counter")), said)
    envs.close()
    assert envs.mode == "async"
    assert not any("warn" in line for line in said)
    make, done = read_start_log(tmp_path / "diagnostics", 0)[-2:]
    assert (make["mark"], done["mark"]) == ("make", "done")
    assert done["since_start_s"] - make["since_start_s"] >= 0.5


def test_prewarming_finds_in_this_process_what_would_fail_in_every_worker(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(
        BackendError, match=r"ValueError: rom_path points to non-existent file.*warpzone doctor"
    ):
        start(tmp_path, Faulty("make", "missing_rom", str(tmp_path / "n")), said, parent_prewarm=True)
    assert not list((tmp_path / "diagnostics").glob("worker_*"))


def test_an_environment_that_cannot_be_made_here_is_one_sentence_too(tmp_path: Path) -> None:
    factory = Faulty("import", "error", str(tmp_path / "counter"))
    with pytest.raises(BackendError, match="ModuleNotFoundError"):
        start(tmp_path, factory, [], force_sync=True)


def test_prewarming_all_stages_names_them(tmp_path: Path) -> None:
    said: list[str] = []
    backend = BackendConfig(
        backend="nes-py", parent_prewarm_all=True, env_diagnostics_dir=str(tmp_path / "diagnostics")
    )
    BackendVectorEnv(1, ["1-1", "1-2"], view=VIEW, backend=backend, factory=Toy(), say=said.append).close()
    assert said[0].startswith("[env] prewarmed 1-1, 1-2 (")


def test_workers_are_started_apart_by_the_delay(tmp_path: Path) -> None:
    envs = start(tmp_path, Toy(), [], num_envs=3, worker_start_delay=0.5)
    envs.close()
    times = [read_start_log(tmp_path / "diagnostics", i)[0]["time"] for i in range(3)]
    assert times[2] - times[0] >= 0.7


def test_force_sync_wins_over_async(tmp_path: Path) -> None:
    envs = start(tmp_path, Toy(), [], force_sync=True)
    envs.close()
    assert envs.mode == "sync"


def test_the_default_deadline_grows_with_the_number_of_environments() -> None:
    assert BackendConfig().reset_timeout_s(1) == 180.0
    assert BackendConfig().reset_timeout_s(8) == 480.0
    assert BackendConfig(env_reset_timeout=5.0).reset_timeout_s(8) == 5.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"backend": "fceux"},
        {"env_retries": -1},
        {"worker_start_delay": -1.0},
        {"env_step_timeout": 0.0},
        {"ram_x_high_addr": "0x900"},
        {"ram_x_low_addr": "x"},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        BackendConfig(**wrong)
