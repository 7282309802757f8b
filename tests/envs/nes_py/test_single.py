"""The single environment keeps Gymnasium's contract and goes into Gymnasium's own vectors."""

from __future__ import annotations

import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from tests.envs.nes_py.consoles import Toy
from warpzone.envs.config import ViewConfig
from warpzone.envs.nes_py.single import BackendEnv

VIEW = ViewConfig(frame_stack=2, size=(8, 8))


def make() -> BackendEnv:
    return BackendEnv(view=VIEW, factory=Toy(pit=46))


def test_an_episode_ends_with_its_own_last_observation_and_info() -> None:
    env = make()
    observation, info = env.reset(seed=3)
    assert info["x_pos"] == 40
    assert observation[:, 0, 0].tolist() == [40, 40]
    env.step(1)
    observation, reward, terminated, truncated, info = env.step(1)
    assert (terminated, truncated, info["x_pos"], info["end"]) == (True, False, 46, 1)
    assert observation[:, 0, 0].tolist() == [44, 46]
    assert reward < 0
    observation, info = env.reset()
    assert info["x_pos"] == 40
    assert observation[:, 0, 0].tolist() == [40, 40]
    env.close()


def test_gymnasium_finds_nothing_to_complain_about() -> None:
    env = make()
    check_env(env, skip_render_check=True)
    env.close()


def test_gymnasiums_own_vectors_run_it() -> None:
    for vector in (SyncVectorEnv([make, make]), AsyncVectorEnv([make, make], context="spawn")):
        vector.reset(seed=1)
        _, _, _, _, info = vector.step(np.array([1, 0]))
        vector.close()
        assert info["x_pos"].tolist() == [44, 40]
