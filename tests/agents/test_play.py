"""`play`: frame by frame it is the same play as decision by decision, and a take can be played again."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from warpzone.agents.agent import Agent, make_policy
from warpzone.agents.play import Replayed, Step, best_take, play, play_frames
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.envs.make import make_envs
from warpzone.errors import CheckpointError
from warpzone.run.presets import CPU

VIEW = replace(CPU.view, noop_max=0, sticky=0.0)


def untrained() -> Agent:
    torch.manual_seed(3)
    policy = make_policy(CPU.model, CPU.view, 1, torch.device("cpu"), "auto", 1)
    return Agent(policy, CPU.view, torch.device("cpu"))


@pytest.fixture(scope="module")
def agent() -> Agent:
    return untrained()


def test_frame_by_frame_is_the_same_play(agent: Agent) -> None:
    skip = VIEW.frame_skip
    whole = make_envs(VIEW, 1, ["1-1"], threads=1, seed=5)
    decisions = list(islice(play(agent, whole, seed=5, greedy=False), 40))
    playing = play_frames(agent, VIEW, "1-1", seed=5)
    frames, (single, *_) = zip(*islice(playing, 40 * skip), strict=True)
    for k, step in enumerate(decisions):
        last = frames[k * skip + skip - 1]
        assert last.held == skip
        assert (step.actions == last.actions).all()
        assert step.info["x_pos"][0] == last.info["x_pos"][0]
        torch.testing.assert_close(step.probabilities, last.probabilities)
    assert np.array_equal(whole.ram, single.ram)
    whole.close()
    playing.close()
    assert single.closed


def test_where_actions_do_not_count_the_network_is_not_asked_and_elsewhere_nothing_changes() -> None:
    torch.manual_seed(3)
    policy = make_policy(CPU.model, CPU.view, 1, torch.device("cpu"), "torch", 1)
    agent, asked = Agent(policy, CPU.view, torch.device("cpu")), list[int]()
    policy.encoder.register_forward_pre_hook(lambda _, given: asked.append(len(given[0])))

    def played(rows: NDArray[np.bool_] | None) -> list[Step]:
        envs = make_envs(VIEW, 6, ["1-1"], threads=1, seed=5, autoreset_mode="same_step")
        steps = []
        for step in islice(play(agent, envs, seed=5, greedy=False, rows=rows), 40):
            steps.append(step)
            if rows is not None and len(steps) == 20:
                rows[1] = rows[4] = False
        envs.close()
        return steps

    every, some = played(None), played(np.ones(6, np.bool_))
    assert asked == [6] * 40 + [6] * 20 + [4] * 20
    left = [0, 2, 3, 5]
    for a, b in zip(every, some, strict=True):
        assert (a.actions[left] == b.actions[left]).all()
        assert (a.info["x_pos"][left] == b.info["x_pos"][left]).all()
        torch.testing.assert_close(a.probabilities[left], b.probabilities[left])
        torch.testing.assert_close(a.values[left], b.values[left])
    assert (some[-1].values[[1, 4]] == 0).all()
    assert (every[-1].values[[1, 4]] != 0).all()
    assert agent.rows is None


def test_at_a_lower_temperature_probable_actions_are_sampled_more_often() -> None:
    agent = untrained()
    agent.policy.logits.weight.data *= 100
    observations = np.random.default_rng(0).integers(0, 256, (64, *agent.view.shape), dtype=np.uint8)

    _, plain, _ = agent.act(observations)
    assert plain.max() > 0.3
    agent.temperature = 0.25
    _, sharp, _ = agent.act(observations)
    torch.testing.assert_close(sharp, (4 * plain.log()).softmax(-1))
    agent.temperature = 1e-6
    actions, _, _ = agent.act(observations)
    assert (actions == plain.argmax(-1).numpy()).all()


@pytest.mark.parametrize("temperature", [0, -1, True, "cold", float("nan"), float("inf")])
def test_a_card_without_a_sound_temperature_is_refused(temperature: object) -> None:
    meta = CheckpointMeta(extra={"temperature": temperature})
    with pytest.raises(CheckpointError, match="is a number above 0"):
        Agent(untrained().policy, CPU.view, torch.device("cpu"), meta)


def test_a_take_leads_to_the_same_place_again(agent: Agent) -> None:
    take = best_take(agent, VIEW, "1-1", tries=3, seed=1, max_decisions=30, threads=1)
    assert len(take.actions) == len(take.probabilities) == len(take.values) <= 30
    envs = make_envs(VIEW, 1, ["1-1"], threads=1)
    steps = list(islice(play(Replayed(take), envs, seed=0, greedy=False), len(take.actions)))
    assert int(steps[-1].final["progress"][0]) == take.progress
    assert [int(step.actions[0]) for step in steps] == take.actions
    envs.close()


def test_a_take_of_one_of_many_levels_is_shown_on_that_level(agent: Agent) -> None:
    stage, view = "levels-0-7@0.3", replace(VIEW, stall_limit=20)
    take = best_take(agent, view, stage, tries=4, seed=2, threads=1)
    assert take.stage.startswith("seed ")
    *_, (last, _) = play_frames(Replayed(take), view, stage, seed=2, level=take.stage)
    assert int(last.info["progress"][0]) == take.progress
