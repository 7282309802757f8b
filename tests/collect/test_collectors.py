"""Rollouts are continuous, exact about stacks and weights, and the same however they are collected."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.collect.fake_envs import CountingEnvs
from tests.learn.rollouts import copy_of
from warpzone.collect.collector import Collector, group_seed
from warpzone.collect.config import CollectConfig
from warpzone.collect.env_group import Listeners
from warpzone.collect.episodes import EpisodeLog
from warpzone.collect.make import make_collector
from warpzone.collect.overlap import OverlappedCollector
from warpzone.errors import ConfigError
from warpzone.learn.rollout import Rollout
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy
from warpzone.model.snapshot import Snapshot, take_snapshot

STEPS, ENVS, STACK = 7, 4, 3
MODES: dict[str, dict[str, bool]] = {
    "serial": {},
    "double": {"double_buffer": True},
    "four groups": {"double_buffer": True, "env_groups": 4},
    "overlap": {"overlap_collect": True},
    "overlap-double": {"overlap_collect": True, "double_buffer": True},
}


class RecordingEnvs(CountingEnvs):
    """Keeps the observations it gave, stacked step by step as a FrameStack wrapper would."""

    def __init__(self, num_envs: int, seed: int = 0) -> None:
        super().__init__(num_envs, seed)
        self.stacked: list[np.ndarray] = []
        self.final_stacked: list[np.ndarray] = []

    def reset(self) -> Any:
        obs, info = super().reset()
        self.stacked.append(np.repeat(obs, STACK, axis=1))
        return obs, info

    def recv(self) -> Any:
        obs, reward, terminated, truncated, info = super().recv()
        last = self.stacked[-1]
        self.final_stacked.append(np.concatenate([last[:, 1:], info["final_obs"]], axis=1))
        new = np.concatenate([last[:, 1:], obs], axis=1)
        for i in np.flatnonzero(terminated | truncated):
            new[i] = obs[i]
        self.stacked.append(new)
        return obs, reward, terminated, truncated, info


def make_policy(recurrent_type: str = "none", heads: int = 3) -> Policy:
    torch.manual_seed(0)
    config = ModelConfig(encoder="tiny", hidden=16, recurrent_type=recurrent_type, memory_length=4)  # type: ignore[arg-type]
    return Policy(config, (STACK, 8, 8), num_actions=3, num_value_heads=heads)


def make(
    mode: str,
    policy: Policy | None = None,
    envs: list[Any] | None = None,
    listeners: Listeners | None = None,
    snapshot: Any = None,
) -> tuple[Collector | OverlappedCollector, list[Any], Policy]:
    config = CollectConfig(num_envs=ENVS, rollout_steps=STEPS, **MODES[mode])
    policy = policy or make_policy()
    if envs is None:
        envs = [RecordingEnvs(ENVS // config.groups, seed=part) for part in range(config.groups)]
    frozen = take_snapshot(policy, 0)
    collector = make_collector(config, envs, policy, snapshot or (lambda: frozen), seed=5, stack=STACK)
    collector.start(listeners)
    return collector, envs, policy


def collect(collector: Collector | OverlappedCollector, count: int) -> list[Rollout]:
    rollouts = [copy_of(collector.collect()) for _ in range(count)]
    collector.close()
    return rollouts


def all_stacks(rollout: Rollout) -> Tensor:
    return rollout.sequences(torch.arange(rollout.num_envs), rollout.steps + 1)


@pytest.mark.parametrize("mode", MODES)
def test_the_last_observation_of_a_rollout_is_the_first_of_the_next(mode: str) -> None:
    collector, _, _ = make(mode)
    first, second, third = (all_stacks(rollout) for rollout in collect(collector, 3))
    assert torch.equal(first[-1], second[0])
    assert torch.equal(second[-1], third[0])
    assert not torch.equal(first[0], second[0])


@pytest.mark.parametrize("mode", MODES)
def test_stacks_are_those_of_a_frame_stack_wrapper_across_episode_ends(mode: str) -> None:
    collector, envs, _ = make(mode)
    rollouts = collect(collector, 3)
    expected = np.concatenate([np.stack(part.stacked[: 3 * STEPS + 1]) for part in envs], axis=1)
    got = torch.cat([all_stacks(rollout)[:-1] for rollout in rollouts])
    assert sum(int(rollout.ends.sum()) for rollout in rollouts) > 10
    np.testing.assert_array_equal(got.numpy(), expected[:-1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("recurrent_type", ["none", "gru", "transformer"])
def test_recorded_numbers_are_those_of_unrolling_the_policy(mode: str, recurrent_type: str) -> None:
    collector, _, policy = make(mode, make_policy(recurrent_type))
    for rollout in collect(collector, 3):
        with torch.no_grad():
            logits, values = policy.unroll(
                all_stacks(rollout), rollout.state0, rollout.age == 0, stage=rollout.stage_ahead
            )
        logp = logits[:-1].log_softmax(-1).gather(-1, rollout.actions.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(rollout.logp, logp, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(rollout.values, values[:-1], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(rollout.bootstrap, values[-1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mode", ["serial", "double"])
@pytest.mark.parametrize("recurrent_type", ["none", "gru", "lstm", "transformer"])
@torch.no_grad()
def test_a_truncated_episode_is_valued_at_its_own_last_observation(mode: str, recurrent_type: str) -> None:
    collector, parts, policy = make(mode, make_policy(recurrent_type))
    rollouts = collect(collector, 2)
    final = torch.from_numpy(np.concatenate([np.stack(part.final_stacked) for part in parts], axis=1))
    truncated = torch.zeros(ENVS, dtype=torch.bool)
    for number, rollout in enumerate(rollouts):
        stacks, state = all_stacks(rollout), rollout.state0
        finals = {
            (int(t), int(n)) for steps, envs, *_ in rollout.finals for t, n in zip(steps, envs, strict=True)
        }
        assert finals == {(t, n) for t, n in rollout.truncated.nonzero().tolist()}
        for t in range(STEPS):
            _, _, state = policy.act(stacks[t], state, rollout.starts[t])
            for n in rollout.truncated[t].nonzero().flatten().tolist():
                _, value, _ = policy.act(
                    final[number * STEPS + t, n].unsqueeze(0),
                    tuple(part[n : n + 1] for part in state),
                    torch.tensor([False]),
                    stage=rollout.stage[t, n : n + 1],
                )
                torch.testing.assert_close(rollout.truncation_value[t, n], value[0], atol=1e-5, rtol=1e-5)
        truncated |= rollout.truncated.any(0)
        assert (rollout.truncation_value[~rollout.truncated] == 0).all()
    assert truncated[0]
    assert truncated[ENVS // 2 :].any(), "no truncation in the second group"


@pytest.mark.parametrize("mode", ["serial", "double"])
def test_stalls_are_told_apart_from_other_truncations(mode: str) -> None:
    class Stalling(RecordingEnvs):
        def info(self) -> dict[str, Any]:
            # An episode of three steps ends in a stall, every other truncation at the step limit.
            return super().info() | {"end": np.where(self.length == 3, 7, 8)}

    halves = 2 if mode == "double" else 1
    envs = [Stalling(ENVS // halves, seed=part) for part in range(halves)]
    collector, _, _ = make(mode, envs=envs)
    stalls = others = 0
    for rollout in collect(collector, 4):
        length = rollout.age[:-1] + 1
        assert torch.equal(rollout.stalled, rollout.truncated & (length == 3))
        stalls += int(rollout.stalled.sum())
        others += int((rollout.truncated & ~rollout.stalled).sum())
    assert stalls
    assert others


def test_a_stage_belongs_to_the_observation_not_to_the_step_that_led_there() -> None:
    collector, _, _ = make("serial")
    first, second = collect(collector, 2)
    episodes = torch.cat([all_stacks(r)[:-1, :, -1, 0, 0] for r in (first, second)]).long()
    expected = (episodes + torch.arange(ENVS)) % 3
    assert torch.equal(torch.cat([first.stage, second.stage]), expected)


@pytest.mark.parametrize("mode", MODES)
def test_decisions_are_counted_the_same_in_every_mode(mode: str) -> None:
    collector, _, _ = make(mode)
    assert sum(rollout.num_decisions for rollout in collect(collector, 3)) == 3 * STEPS * ENVS


class Apart(CountingEnvs):
    """Environments that do not depend on which others are in the same vector; the first is number `first`."""

    def __init__(self, num_envs: int, first: int) -> None:
        super().__init__(num_envs)
        self.first = first

    def begin_episode(self, i: int) -> None:
        self.episode[i] += 1
        self.length[i] = 1 + (3 * self.episode[i] + 5 * (self.first + i)) % 8

    def draw(self, i: int) -> np.ndarray:
        picture = super().draw(i)
        picture[0, 2:] += np.uint8(20 * self.first)
        return picture

    def info(self) -> dict[str, Any]:
        stage = (self.episode + self.first + np.arange(self.num_envs)) % self.num_stages
        return super().info() | {"stage_index": stage}

    def outcome(self, i: int, action: int) -> tuple[float, bool, bool]:
        reward, terminated, truncated = super().outcome(i, action)
        return reward + self.first, terminated, truncated


@pytest.mark.parametrize("mode", ["double", "four groups", "overlap", "overlap-double"])
@pytest.mark.parametrize("recurrent_type", ["none", "gru"])
@torch.no_grad()
def test_every_mode_collects_what_the_serial_one_does(mode: str, recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    # Greedy, so that the streams of random numbers, one for each group, make no difference.
    policy.logits.weight.data *= 1e6
    plain = torch.arange(0, 20 * ENVS, 20, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, STACK, 8, 8)
    starts = torch.ones(ENVS, dtype=torch.bool)
    policy.logits.bias.data -= policy.act(plain, policy.initial_state(ENVS), starts)[0].mean(0)
    serial, _, _ = make("serial", policy, [Apart(ENVS, 0)])
    groups = CollectConfig(num_envs=ENVS, **MODES[mode]).groups
    parts = [Apart(ENVS // groups, ENVS // groups * group) for group in range(groups)]
    other, _, _ = make(mode, policy, parts)
    rollouts = list(zip(collect(serial, 3), collect(other, 3), strict=True))
    for one, two in rollouts:
        for name in ("frames", "age", "stage_ahead", "actions", "rewards", "terminated", "truncated"):
            assert torch.equal(getattr(one, name), getattr(two, name)), name
        for name in ("logp", "values", "bootstrap", "truncation_value"):
            torch.testing.assert_close(getattr(one, name), getattr(two, name), atol=1e-5, rtol=1e-4)
    assert len(torch.cat([one.actions for one, _ in rollouts]).unique()) > 1


def test_no_two_groups_of_any_two_seeds_share_their_random_numbers() -> None:
    seeds = [group_seed(seed, index) for seed in range(100) for index in range(2)]
    assert len(set(seeds)) == len(seeds)
    assert group_seed(7, 0) == 7, "the first group keeps the stream of the run's seed"
    collector, _, _ = make("double")
    assert isinstance(collector, Collector)
    assert [group.generator.initial_seed() for group in collector.groups] == [5, group_seed(5, 1)]


@pytest.mark.parametrize("key", ["groups", "lanes"])
def test_a_collector_goes_on_from_a_checkpoint_also_an_older_one(key: str) -> None:
    collector, _, _ = make("double")
    collector.collect()
    state = collector.state_dict()
    state[key] = state.pop("groups")
    other, _, _ = make("double")
    other.load_state_dict(state)
    assert isinstance(collector, Collector)
    assert isinstance(other, Collector)
    for one, two in zip(collector.groups, other.groups, strict=True):
        assert torch.equal(one.recent, two.recent)
        assert torch.equal(one.generator.get_state(), two.generator.get_state())
        assert torch.equal(one.age[-1], two.age[-1])


def test_the_same_seed_chooses_the_same_actions_whatever_torch_draws_elsewhere() -> None:
    runs = []
    for disturbance in (0, 1):
        collector, _, _ = make("serial")
        torch.manual_seed(disturbance)
        runs.append(torch.cat([r.actions for r in collect(collector, 2)]))
    assert torch.equal(*runs)


@pytest.mark.parametrize(("mode", "lag"), [("serial", 0), ("double", 0), ("overlap", 1)])
def test_each_step_records_the_weights_that_chose_it(mode: str, lag: int) -> None:
    policy = make_policy()
    current = [take_snapshot(policy, 0)]
    taken = threading.Semaphore(0)

    def snapshot() -> Snapshot:
        taken.release()
        return current[0]

    collector, _, _ = make(mode, policy, snapshot=snapshot)
    versions = []
    for update in range(1, 6):
        rollout = collector.collect()
        versions.append(set(rollout.version.unique().tolist()))
        for _ in range(lag + (update == 1)):  # the thread has begun the next rollout
            assert taken.acquire(timeout=10)
        current[0] = take_snapshot(policy, update)
    collector.close()
    assert versions == [{max(0, update - lag)} for update in range(5)]


def test_new_weights_act_from_the_next_rollout_on() -> None:
    policy = make_policy()
    current: list[Snapshot] = [take_snapshot(policy, 0)]
    collector, _, _ = make("serial", policy, snapshot=lambda: current[0])
    before = collector.collect().values.clone()
    policy.value.linear.bias.data.add_(100)
    current[0] = take_snapshot(policy, 1)
    after = collector.collect().values
    assert before.abs().max() < 50
    assert after.min() > 50


def test_an_error_in_the_collector_thread_reaches_the_caller() -> None:
    class FailingEnvs(CountingEnvs):
        def recv(self) -> Any:
            if self.episode.sum() > 12:
                raise RuntimeError("the console caught fire")
            return super().recv()

    collector, _, _ = make("overlap", envs=[FailingEnvs(ENVS)])
    with pytest.raises(RuntimeError, match="caught fire"):
        collect(collector, 20)
    with pytest.raises(RuntimeError, match="caught fire"):
        collector.collect()
    collector.close()


@pytest.mark.parametrize("collected", [0, 1, 3])
def test_closing_ends_the_thread_and_leaves_no_step_under_way(collected: int) -> None:
    collector, (envs,), _ = make("overlap")
    for _ in range(collected):
        collector.collect()
    collector.close()
    collector.close()
    assert not any(thread.name == "collector" for thread in threading.enumerate())
    assert envs.pending is None


@pytest.mark.parametrize("mode", ["serial", "double", "four groups"])
def test_finished_episodes_are_told_with_their_own_numbers(mode: str) -> None:
    records: list[dict[str, Any]] = []
    steps: list[slice] = []
    listeners = Listeners(on_episodes=records.extend, on_step=lambda columns, _: steps.append(columns))
    collector, envs, _ = make(mode, listeners=listeners)
    rollouts = collect(collector, 3)
    ends = torch.cat([r.ends for r in rollouts])
    rewards = torch.cat([r.rewards for r in rollouts])
    stages = torch.cat([r.stage for r in rollouts])
    expected = []
    for n in range(ENVS):
        begin = 0
        for t in ends[:, n].nonzero().flatten().tolist():
            length = t + 1 - begin
            total = rewards[begin : t + 1, n].sum().item()
            expected.append((int(stages[t, n]), total, length, length, length % 2 == 0))
            begin = t + 1
    got = [(r["stage"], r["return"], r["length"], r["x_max"], r["cleared"]) for r in records]
    assert sorted(got) == sorted(expected)
    assert {r["end"] for r in records} == {"terminated", "truncated"}
    assert {r["start"] for r in records} == {"stage"}
    # Every step once, in the order in which they were received.
    first_columns = list(range(0, ENVS, ENVS // len(envs)))
    assert [columns.start for columns in steps] == first_columns * (3 * STEPS)


def test_an_episode_record_names_its_end_and_its_start() -> None:
    first = {"stage_index": np.array([2, 3]), "from_snapshot": np.array([0, 1])}
    log = EpisodeLog(2, first)
    last = {"end": np.array([7, 2]), "x_pos": np.array([50, 900]), "flag_get": np.array([False, True])}
    then = {
        "stage_index": np.array([0, 0]),
        "from_snapshot": np.array([1, 0]),
        "x_pos": np.array([40, 40]),
        "final_info": last,
    }
    both, neither = np.array([True, True]), np.array([False, False])
    stalled, cleared = log.observe(np.array([1.0, 2.0], np.float32), neither, both, then)
    assert (stalled["end"], stalled["start"], stalled["stage"], stalled["x_max"]) == (
        "stalled",
        "stage",
        2,
        50,
    )
    assert (cleared["end"], cleared["start"], cleared["cleared"]) == ("flag", "snapshot", True)
    (third, _) = log.observe(np.array([1.0, 2.0], np.float32), neither, both, then)
    assert (third["start"], third["stage"], third["return"]) == ("snapshot", 0, 1.0)


def test_settings_that_do_not_fit_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match="even number"):
        CollectConfig(num_envs=3, double_buffer=True)
    with pytest.raises(ConfigError, match="num_envs must be at least 1"):
        CollectConfig(num_envs=0)
    with pytest.raises(ConfigError, match="do not go with 1"):
        make("double", envs=[CountingEnvs(ENVS)])


@pytest.mark.parametrize("mode", MODES)
def test_what_a_step_brought_is_told_while_the_next_one_is_under_way(mode: str) -> None:
    told: list[tuple[int, bool]] = []

    def under_way(columns: slice) -> bool:
        return envs[columns.start * len(envs) // ENVS].pending is not None

    listeners = Listeners(
        on_step=lambda columns, info: told.append((columns.start, under_way(columns))),
    )
    groups = CollectConfig(num_envs=ENVS, **MODES[mode]).groups
    envs = [RecordingEnvs(ENVS // groups, seed=part) for part in range(groups)]
    collector, _, _ = make(mode, envs=envs, listeners=listeners)
    collect(collector, 2)
    # With overlap more than the rollouts handed out was collected; the last of it may have been cut short.
    per_rollout = STEPS * len(envs)
    assert len(told) >= 2 * per_rollout
    for start in {start for start, _ in told}:
        group = [pending for at, pending in told if at == start][: 2 * STEPS]
        # After the last step of a rollout nothing is sent before the next one begins.
        assert group == ([True] * (STEPS - 1) + [False]) * 2
