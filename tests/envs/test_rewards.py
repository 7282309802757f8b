"""Rewards: every term by itself, annealing, and a scripted episode that proves the pipeline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.envs.reward_reference import reference_rewards
from tests.envs.telemetry_reference import Journey
from warpzone.engine import FIELDS
from warpzone.envs.actions import ACTION_SETS, parse_buttons
from warpzone.envs.rewards import NES_PY_REWARD, TERMS, RewardArrays, RewardConfig, RewardShaper
from warpzone.envs.scripts import parse_sequence, play_script, probe_forward_actions, scripted_actions
from warpzone.envs.stages import parse_stages, stage_span
from warpzone.envs.telemetry import ENDS, counts_as_ground, room
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError

DEAD = ENDS.index("death")


def telemetry(**values: int) -> np.ndarray:
    fields = {"x_pos": 100, "time": 300, "coins": 99, **values}
    return np.array([[fields.get(name, 0)] for name in FIELDS], np.int32)


def shaped(shaper: RewardShaper, after: np.ndarray) -> RewardArrays:
    out = RewardArrays(1)
    shaper.of_telemetry(telemetry(), after, np.array([False]), out)
    return out


def reward(config: RewardConfig, after: np.ndarray) -> dict[str, float]:
    out = shaped(RewardShaper(config, 1), after)
    assert out.total[0] == pytest.approx(sum(term[0] for term in out.terms.values()))
    return {name: float(term[0]) for name, term in out.terms.items()}


UNSCALED = RewardConfig(
    reward_scale_start=1.0, reward_score_weight=0.1, reward_time_weight=2.0, reward_wrong_turn=50.0,
    reward_coin_weight=3.0,
)  # fmt: skip


def test_each_term_pays_what_its_weight_says() -> None:
    assert set(TERMS) == set(reward(UNSCALED, telemetry()))
    assert reward(UNSCALED, telemetry(progress=12))["distance"] == 12
    assert reward(UNSCALED, telemetry(score=200))["score"] == pytest.approx(20)
    assert reward(UNSCALED, telemetry(flag_get=1))["flag"] == 50
    assert reward(UNSCALED, telemetry(time=299))["time"] == -2
    assert reward(UNSCALED, telemetry(end=DEAD))["death"] == -50
    assert reward(UNSCALED, telemetry(wrong_turns=1))["maze"] == -50
    assert reward(UNSCALED, telemetry(coins=1))["coin"] == 6  # over 99: the counter begins again at 0
    assert reward(replace(UNSCALED, reward_clip=15.0), telemetry(end=DEAD))["clip"] == 35


def test_new_ground_is_paid_once_and_signed_movement_both_ways() -> None:
    assert reward(UNSCALED, telemetry(x_pos=80))["distance"] == 0
    signed = RewardConfig(reward_scale_start=1.0, reward_signed_distance=True)
    assert reward(signed, telemetry(x_pos=92))["distance"] == -8
    assert reward(signed, telemetry(x_pos=1000))["distance"] == 0


def test_the_scale_goes_linearly_from_start_to_final() -> None:
    config = RewardConfig(reward_scale_start=1.0, reward_scale_final=0.0, reward_scale_anneal_steps=10)
    shaper = RewardShaper(config, 1)
    scales = []
    for _ in range(12):
        scales.append(shaper.scale())
        shaped(shaper, telemetry())
    np.testing.assert_allclose(scales, [1 - min(i, 10) / 10 for i in range(12)], atol=1e-12)


def test_going_back_and_coming_again_earns_nothing() -> None:
    envs = MarioVectorEnv(1, stage="1-1")
    envs.reset(seed=0)
    forward = sum(float(envs.step(np.array([1]))[1][0]) for _ in range(10))
    back = [float(envs.step(np.array([6]))[1][0]) for _ in range(14)]
    again = sum(float(envs.step(np.array([1]))[1][0]) for _ in range(4))
    assert forward > 0.5
    assert not any(back[6:])  # until then he slides on
    assert again < 0.2 * forward


def test_one_scripted_episode_earns_shaping() -> None:
    envs = MarioVectorEnv(1, stage="1-1")
    script = scripted_actions(parse_sequence("START:8,RIGHT+B:180"), "simple", 4)
    sums = play_script(envs, script)
    assert sums["shaping_raw_sum"] > 0
    assert sums["distance_delta_sum"] > 100


def test_probing_finds_an_action_that_runs_right() -> None:
    envs = MarioVectorEnv(1, stage="1-1")
    best, gains = probe_forward_actions(envs, decisions=12)
    assert "RIGHT" in ACTION_SETS["simple"][best]
    assert gains[best] > gains[0]


@pytest.mark.parametrize("text", ["", "RIGHT", "RIGHT:x", "JUMP:8", "RIGHT:0"])
def test_a_bad_script_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_sequence(text)


def test_action_sets_hold_the_buttons_they_name() -> None:
    assert parse_buttons("RIGHT+B") == 0x82
    assert [len(names) for names in ACTION_SETS.values()] == [5, 7, 12, 20]
    assert any("DOWN" in name for name in ACTION_SETS["extended"])


def test_stage_lists_expand() -> None:
    assert len(parse_stages("all")) == 32
    assert parse_stages("3") == ["3-1", "3-2", "3-3", "3-4"]
    assert parse_stages("1-1, 8-4") == ["1-1", "8-4"]
    assert stage_span("1-4", 2) == ["1-4", "2-1"]
    for bad in ("", "1-5", "0-1", "x"):
        with pytest.raises(ConfigError):
            parse_stages(bad)


@pytest.mark.parametrize(
    "config",
    [
        RewardConfig(),
        UNSCALED,
        NES_PY_REWARD,
        RewardConfig(reward_coin_weight=0.37, reward_clip=3.3),
        RewardConfig(reward_scale_start=0.3, reward_scale_final=0.007, reward_scale_anneal_steps=1000),
        RewardConfig(reward_distance_cap=7.5, reward_score_weight=0.013, reward_time_weight=-0.7),
    ],
)
def test_the_engine_computes_rewards_to_the_bit_as_numpy_does(config: RewardConfig) -> None:
    rng = np.random.default_rng(0)
    n = 257
    shaper = RewardShaper(config, n)
    for _ in range(20):
        before, after = (rng.integers(-50, 3000, (len(FIELDS), n)).astype(np.int32) for _ in range(2))
        after[:, : n // 2] = before[:, : n // 2] + rng.integers(-40, 41, (len(FIELDS), n // 2))
        for rows in (before, after):
            rows[FIELDS.index("flag_get")] = rng.integers(0, 2, n)
            rows[FIELDS.index("end")] = rng.integers(0, len(ENDS), n)
        fresh = rng.random(n) < 0.1
        by_name = [dict(zip(FIELDS, rows, strict=True)) for rows in (before, after)]
        expected, expected_terms = reference_rewards(shaper, *by_name)
        out = RewardArrays(n)
        shaper.of_telemetry(before, after, fresh, out)
        for name in TERMS:
            np.testing.assert_array_equal(out.terms[name], np.where(fresh, 0, expected_terms[name]))
        np.testing.assert_array_equal(out.total, np.where(fresh, 0, expected))
        np.testing.assert_array_equal(out.dx, by_name[1]["x_pos"] - by_name[0]["x_pos"])


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_rewards_of_real_play_are_those_of_its_telemetry(mode: str) -> None:
    envs = MarioVectorEnv(8, stages=["1-1", "8-1"], autoreset_mode=mode, step_limit=60, reward=UNSCALED)
    rng = np.random.default_rng(1)
    _, before = envs.reset(seed=3)
    shaper = RewardShaper(UNSCALED, 8)
    fresh = np.zeros(8, np.bool_)
    episodes = 0
    for _ in range(300):
        _, rewards, terminated, truncated, info = envs.step(rng.integers(0, 5, 8))
        done = terminated | truncated
        after = info.get("final_info", info)
        expected, _ = reference_rewards(shaper, before, after)
        np.testing.assert_array_equal(rewards, np.where(fresh, 0, expected))
        if mode == "next_step":
            fresh = done
        before = info
        episodes += int(done.sum())
    assert episodes > 8


@pytest.mark.parametrize("ground", ["reached", "stood"])
def test_ground_counts_as_the_slow_reference_says(ground: str) -> None:
    stages = ["1-3", "2-2", "1-2", "8-1"]
    envs = MarioVectorEnv(12, stages=stages, frame_skip=1, frame_stack=1, size=8, ground=ground)
    dice = np.random.default_rng(0)
    _, info = envs.reset(seed=0)
    journeys = [Journey() for _ in range(12)]
    for journey, ram, x in zip(journeys, envs.ram, info["x_pos"], strict=True):
        journey.look(room(ram), int(x))
    in_the_air = falls = 0
    for t in range(1500):
        if t % 4 == 0:
            actions = dice.choice([3, 4, 4, 2], 12)
        _, _, terminated, _, info = envs.step(actions)
        for i, ram in enumerate(envs.ram):
            if info["steps"][i] == 0:
                journeys[i] = Journey()
                journeys[i].look(room(ram), int(info["x_pos"][i]))
            else:
                counts = counts_as_ground(ram, ground == "stood")
                journeys[i].look(room(ram), int(info["x_pos"][i]), counts)
                in_the_air += not counts
            assert info["progress"][i] == journeys[i].progress
            falls += bool(terminated[i]) and int(info["x_max"][i]) > int(info["progress"][i]) + 60
    assert (in_the_air > 1000) == (ground == "stood")
    assert falls > 0 or ground == "reached"
    envs.close()


def test_a_jump_over_ground_that_counts_only_when_stood_on_is_paid_as_a_whole() -> None:
    after = telemetry(progress=150)
    assert shaped(RewardShaper(UNSCALED, 1, by_jumps=True), after).total[0] == 150
    assert shaped(RewardShaper(UNSCALED, 1), after).total[0] == UNSCALED.reward_distance_cap
