"""The vector behaves alike with all environments here and with one worker each."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.envs.nes_py.toy_emulators import StuckInPlay, Toy
from warpzone.engine import FIELDS
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.config import BackendConfig, BackendError
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.envs.nes_py.worker import STAGES, read_start_log
from warpzone.envs.rewards import RewardConfig
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError

VIEW = ViewConfig(frame_stack=1, size=(8, 8))
RIGHT = 1


def make(
    mode: str,
    tmp_path: Path,
    num_envs: int = 2,
    *,
    factory: Any = None,
    view: ViewConfig = VIEW,
    **options: Any,
) -> BackendVectorEnv:
    said: list[str] = []
    stages = options.pop("stages", ["1-1"])
    backend = BackendConfig(
        backend="nes-py", async_env=mode == "async", env_diagnostics_dir=str(tmp_path / "diagnostics"),
        **{"env_reset_timeout": 60.0, **options},
    )  # fmt: skip
    envs = BackendVectorEnv(
        num_envs, stages, view=view, backend=backend, factory=factory or Toy(), say=said.append,
        reward=RewardConfig(reward_scale_start=1.0),
    )  # fmt: skip
    envs.said = said  # type: ignore[attr-defined]
    return envs


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_construction_is_shown_env_by_env_and_marked_stage_by_stage(mode: str, tmp_path: Path) -> None:
    envs = make(mode, tmp_path)
    envs.close()
    said = envs.said  # type: ignore[attr-defined]
    assert [line.partition(" (")[0] for line in said] == [
        "[env] constructing env 1/2",
        "[env] constructing env 2/2",
    ]
    for i in range(2):
        assert [mark["mark"] for mark in read_start_log(tmp_path / "diagnostics", i)] == list(STAGES)
    assert envs.mode == mode


def test_observations_rewards_and_telemetry_follow_the_player(mode: str, tmp_path: Path) -> None:
    envs = make(mode, tmp_path)
    observations, info = envs.reset(seed=1)
    assert observations.shape == (2, 1, 8, 8)
    assert observations[0, 0, 0, 0] == 40
    assert info["x_pos"].tolist() == [40, 40]
    observations, rewards, terminated, truncated, info = envs.step(np.array([RIGHT, 0]))
    envs.close()
    assert info["x_pos"].tolist() == [44, 40]
    assert info["progress"].tolist() == [4, 0]
    assert rewards.tolist() == [4.0, 0.0]
    assert info["reward_terms"]["distance"].tolist() == [4.0, 0.0]
    assert info["dx"].tolist() == [4, 0]
    assert observations[:, 0, 0, 0].tolist() == [44, 40]
    assert not terminated.any()
    assert not truncated.any()
    assert set(FIELDS) <= set(info)


def test_an_episode_that_ends_restarts_in_the_same_step(mode: str, tmp_path: Path) -> None:
    envs = make(mode, tmp_path, factory=Toy(pit=46))
    envs.reset(seed=1)
    envs.step(np.array([RIGHT, 0]))
    observations, rewards, terminated, _, info = envs.step(np.array([RIGHT, 0]))
    envs.close()
    assert terminated.tolist() == [True, False]
    assert info["x_pos"].tolist() == [40, 40]
    assert info["final_info"]["x_pos"].tolist() == [46, 40]
    assert info["final_info"]["end"].tolist() == [1, 0]
    assert info["final_info"]["steps"].tolist() == [2, 2]
    assert info["_final_info"].tolist() == [True, False]
    assert info["final_obs"][0, 0, 0, 0] == 46
    assert observations[0, 0, 0, 0] == 40
    # The pixel he dies on is no ground.
    assert rewards.tolist() == [1.0 - 50.0, 0.0]


def test_a_step_limit_truncates(mode: str, tmp_path: Path) -> None:
    envs = make(mode, tmp_path, view=ViewConfig(frame_stack=1, size=(8, 8), step_limit=2))
    envs.reset(seed=1)
    envs.step(np.array([0, 0]))
    _, _, terminated, truncated, info = envs.step(np.array([0, 0]))
    envs.close()
    assert truncated.all()
    assert not terminated.any()
    assert info["final_info"]["end"].tolist() == [8, 8]


def test_send_and_recv_are_the_halves_of_a_step(mode: str, tmp_path: Path) -> None:
    envs = make(mode, tmp_path)
    envs.reset(seed=1)
    envs.send(np.array([RIGHT, RIGHT]))
    with pytest.raises(ConfigError, match="call recv"):
        envs.send(np.array([RIGHT, RIGHT]))
    *_, info = envs.recv()
    assert info["x_pos"].tolist() == [44, 44]
    with pytest.raises(ConfigError, match="call send"):
        envs.recv()
    envs.close()


def test_stage_weights_choose_the_next_episodes(mode: str, tmp_path: Path) -> None:
    envs = make(mode, tmp_path, factory=Toy(pit=44), stages=["1-1", "2-3"])
    envs.set_stage_weights([0.0, 1.0])
    _, info = envs.reset(seed=1)
    assert info["stage_index"].tolist() == [1, 1]
    assert info["world"].tolist() == [2, 2]
    envs.set_stage_weights([1.0, 0.0])
    *_, info = envs.step(np.array([RIGHT, RIGHT]))
    envs.close()
    assert info["stage_index"].tolist() == [0, 0]


def test_stages_and_idle_frames_are_drawn_as_on_the_native_engine(tmp_path: Path) -> None:
    stages = ["1-1", "1-2", "3-1"]
    view = ViewConfig(frame_stack=1, size=(8, 8), noop_max=30)
    envs = make("sync", tmp_path, 16, stages=stages, view=view)
    native = MarioVectorEnv(16, stages=stages, frame_stack=1, size=8, noop_max=30, autoreset_mode="same_step")
    _, ours = envs.reset(seed=7)
    _, theirs = native.reset(seed=7)
    assert ours["stage_index"].tolist() == theirs["stage_index"].tolist()
    assert ours["frames"].tolist() == theirs["frames"].tolist()
    assert len(set(ours["stage_index"].tolist())) == 3


def test_bad_actions_are_refused_in_a_sentence(tmp_path: Path) -> None:
    envs = make("sync", tmp_path)
    envs.reset()
    for actions in (np.array([0]), np.array([0, 99]), np.array([0.5, 1.0])):
        with pytest.raises(ConfigError):
            envs.step(actions)


@pytest.mark.parametrize(
    ("start_method", "shared_memory"),
    [("fork", True), ("forkserver", True), ("spawn", True), ("spawn", False)],
)
def test_every_start_method_gives_the_same_numbers(
    tmp_path: Path, start_method: str, shared_memory: bool
) -> None:
    envs = make("async", tmp_path, env_start_method=start_method, env_shared_memory=shared_memory)
    envs.reset(seed=1)
    observations, rewards, *_ = envs.step(np.array([RIGHT, 0]))
    envs.close()
    assert rewards.tolist() == [4.0, 0.0]
    assert observations[:, 0, 0, 0].tolist() == [44, 40]


@pytest.mark.parametrize("signal_sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_killed_or_stopped_worker_is_replaced_and_its_episode_truncated(
    tmp_path: Path, signal_sent: signal.Signals
) -> None:
    envs = make("async", tmp_path, 3, env_step_timeout=8.0)
    envs.reset(seed=1)
    envs.step(np.full(3, RIGHT))
    pids = list(envs.worker_pids)
    assert pids[1] is not None
    os.kill(pids[1], signal_sent)
    began = time.monotonic()
    _, rewards, terminated, truncated, info = envs.step(np.full(3, RIGHT))
    took_s = time.monotonic() - began
    assert took_s < 8.0 + 60.0
    assert truncated.tolist() == [False, True, False]
    assert not terminated.any()
    assert info["worker_lost"].tolist() == [False, True, False]
    assert rewards.tolist() == [4.0, 0.0, 4.0]
    assert info["x_pos"].tolist() == [48, 40, 48]
    assert info["final_info"]["x_pos"].tolist() == [48, 44, 48]
    assert info["final_obs"][1, 0, 0, 0] == 44
    assert envs.workers_lost == 1
    assert envs.worker_pids[0] == pids[0]
    assert envs.worker_pids[1] != pids[1]
    *_, info = envs.step(np.full(3, RIGHT))
    assert info["x_pos"].tolist() == [52, 44, 52]
    assert not info["worker_lost"].any()
    envs.close()
    warning = next(line for line in envs.said if line.startswith("[env][warn]"))  # type: ignore[attr-defined]
    expected = "killed by signal 9" if signal_sent == signal.SIGKILL else "is stuck"
    assert f"worker 1 (pid {pids[1]}) " in warning
    assert expected in warning
    assert "last stage mark: done" in warning
    if signal_sent == signal.SIGSTOP:
        assert "state: stopped" in warning


def test_a_worker_stuck_in_a_frame_is_named_with_its_stack(tmp_path: Path) -> None:
    envs = make("async", tmp_path, 1, factory=StuckInPlay(44), env_step_timeout=1.5)
    envs.reset(seed=1)
    _, _, _, truncated, _ = envs.step(np.array([RIGHT]))
    envs.close()
    assert truncated.tolist() == [True]
    assert any("hang_at" in line for line in envs.said)  # type: ignore[attr-defined]


def test_workers_are_gone_after_close(tmp_path: Path) -> None:
    envs = make("async", tmp_path)
    pids = list(envs.worker_pids)
    envs.close()
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_that_fail_for_good_in_mid_run_end_it_when_strict(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    factory = OnlyOnce(str(marker))
    envs = make("async", tmp_path, 1, factory=factory, env_retries=0, strict_env=True)
    envs.reset(seed=1)
    assert envs.worker_pids[0] is not None
    os.kill(envs.worker_pids[0], signal.SIGKILL)
    with pytest.raises(BackendError, match="--strict-env"):
        envs.step(np.array([RIGHT]))


def test_workers_that_fail_for_good_in_mid_run_are_followed_by_this_process(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    envs = make("async", tmp_path, 1, factory=OnlyOnce(str(marker), worker_only=True), env_retries=0)
    envs.reset(seed=1)
    assert envs.worker_pids[0] is not None
    os.kill(envs.worker_pids[0], signal.SIGKILL)
    _, _, _, truncated, info = envs.step(np.array([RIGHT]))
    assert truncated.tolist() == [True]
    assert info["x_pos"].tolist() == [40]
    assert envs.mode == "sync"
    *_, info = envs.step(np.array([RIGHT]))
    assert info["x_pos"].tolist() == [44]
    envs.close()


class OnlyOnce:
    """Makes one emulator and refuses to make a second; with `worker_only` this process may always."""

    def __init__(self, marker: str, worker_only: bool = False) -> None:
        self.marker, self.worker_only, self.parent = marker, worker_only, os.getpid()

    def __call__(self, mark: Any) -> Any:
        if self.worker_only and os.getpid() == self.parent:
            return Toy()(mark)
        with open(self.marker, "x"):
            pass
        return Toy()(mark)
