"""The whole game: stages passed before the first death and in all, and how a game ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.envs.telemetry_reference import episode_end
from warpzone.agents.agent import Agent, make_policy
from warpzone.agents.evaluation import Trial
from warpzone.agents.whole_game import GameCounter, evaluate_game
from warpzone.envs.rewards import RewardConfig
from warpzone.envs.telemetry import End
from warpzone.envs.vector import MarioVectorEnv
from warpzone.run.presets import CPU

RIGHT_RUN = 3


class Runner(Agent):
    """Runs into the first enemy, every time."""

    def act(
        self, observations: NDArray[np.uint8], starts: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Tensor, Tensor]:
        return np.full(len(starts), RIGHT_RUN), torch.zeros(len(starts), 7), torch.zeros(len(starts))


@pytest.mark.parametrize(("mode", "games"), [("sampled", 3), ("greedy", 2)])
def test_a_game_lasts_until_its_lives_are_lost(mode: str, games: int) -> None:
    policy = make_policy(CPU.model, CPU.view, 1, torch.device("cpu"), "auto", 1)
    agent = Runner(policy, replace(CPU.view, stall_limit=10, step_limit=20), torch.device("cpu"))
    told: list[tuple[int, int]] = []
    noop_max = 1 if mode == "greedy" else 30
    trial = Trial(episodes=3, mode=mode, noop_max=noop_max, threads=1)  # type: ignore[arg-type]
    result = evaluate_game(agent, trial, lambda done, total: told.append((done, total)))
    assert len(result.games) == games
    assert told[-1] == (games, games)
    for game in result.games:
        assert (game.deaths, game.passed, game.passed_without_death, game.finished) == (3, 0, 0, False)
        assert game.last == "1-1"
        assert game.decisions > 60  # more than one life's worth, whatever limits the agent was trained with
    assert result.as_dict()["ended_in"] == {"1-1": games}


def test_each_life_lost_in_a_game_earns_the_penalty() -> None:
    reward = RewardConfig(reward_death=7.0, reward_scale_start=1.0, reward_scale_final=1.0, reward_clip=0.0)
    envs = MarioVectorEnv(1, "game", autoreset_mode="disabled", reward=reward, threads=1)
    envs.reset(seed=0)
    deaths, over = [], False
    while not over:
        _, _, terminated, _, info = envs.step(np.array([RIGHT_RUN]))
        deaths.append(float(info["reward_terms"]["death"][0]))
        over = bool(terminated[0])
    assert [death for death in deaths if death] == [-7.0, -7.0, -7.0]
    envs.close()


def test_stages_are_counted_by_how_they_were_passed() -> None:
    """Two games side by side: one dies in 1-2 and then warps; the other finishes without a death."""
    counter = GameCounter(2)
    at = [  # world, stage, life, end of each game
        ((1, 1, 2, 0), (8, 3, 2, 0)),  # the second was put late into its game: one jump, counted once
        ((1, 2, 2, 0), (8, 4, 2, 0)),
        ((1, 2, 1, 0), (8, 4, 3, 0)),  # a life lost, a life won
        ((4, 1, 1, 0), (8, 4, 3, End.AXE)),
        ((4, 1, 0xFF, End.GAME_OVER), (8, 4, 3, 0)),
    ]
    ended = []
    for step, moments in enumerate(at):
        told = {
            name: np.array([m[i] for m in moments])
            for i, name in enumerate(("world", "stage", "life", "end"))
        }
        told["steps"] = np.array([step, step])
        counter.look(told)
        ended += [counter.game(i, told) for i in range(2) if told["end"][i]]
    finished, lost = ended
    assert (finished.passed_without_death, finished.passed, finished.deaths, finished.finished) == (
        3,
        3,
        0,
        True,
    )
    assert (lost.passed_without_death, lost.passed, lost.deaths, lost.warps) == (1, 2, 2, 1)
    assert not lost.finished


def test_the_game_ends_with_the_last_axe_alone() -> None:
    ram = np.zeros(0x800, np.uint8)
    ram[0x075A], ram[0x0770] = 2, 2
    ends = []
    for world in range(8):
        ram[0x075F] = world
        ends.append(episode_end(ram, (0, 0)))
    assert ends == [End.NONE] * 7 + [End.AXE]
