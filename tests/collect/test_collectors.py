"""Rollouts are continuous, exact about stacks and weights, and the same however they are collected."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.collect.fake_envs import CountingEnvs
from warpzone.collect import CollectConfig, Collector, Listeners, OverlappedCollector, make_collector
from warpzone.collect.episodes import EpisodeLog
from warpzone.errors import ConfigError
from warpzone.learn.rollout import Rollout
from warpzone.model import ModelConfig, Policy, Snapshot, build_policy, take_snapshot

STEPS, ENVS, STACK = 7, 4, 3
MODES: dict[str, dict[str, bool]] = {
    "serial": {},
    "double": {"double_buffer": True},
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
    return build_policy(config, (STACK, 8, 8), num_actions=3, num_value_heads=heads)


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
        halves = 2 if config.double_buffer else 1
        envs = [RecordingEnvs(ENVS // halves, seed=part) for part in range(halves)]
    frozen = take_snapshot(policy, 0)
    collector = make_collector(
        config, envs, policy, snapshot or (lambda: frozen), seed=5, stack=STACK, listeners=listeners
    )
    collector.start()
    return collector, envs, policy


def copy_of(rollout: Rollout) -> Rollout:
    state = rollout.state_dict()
    cloned = {k: tuple(x.clone() for x in v) if k == "state0" else v.clone() for k, v in state.items()}
    return Rollout.from_state_dict(cloned)


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


def test_a_truncated_episode_is_valued_at_its_own_last_observation() -> None:
    collector, (envs,), policy = make("serial")
    rollout = collect(collector, 1)[0]
    final = torch.from_numpy(np.stack(envs.final_stacked))
    for t, n in rollout.truncated.nonzero().tolist():
        with torch.no_grad():
            _, value, _ = policy.act(final[t, n].unsqueeze(0), stage=rollout.stage[t, n : n + 1])
        torch.testing.assert_close(rollout.truncation_value[t, n], value[0], atol=1e-5, rtol=1e-5)
    assert rollout.truncated.any()
    assert (rollout.truncation_value[~rollout.truncated] == 0).all()


def test_a_stage_belongs_to_the_observation_not_to_the_step_that_led_there() -> None:
    collector, _, _ = make("serial")
    first, second = collect(collector, 2)
    episodes = torch.cat([all_stacks(r)[:-1, :, -1, 0, 0] for r in (first, second)]).long()
    expected = (episodes + torch.arange(ENVS)) % 3
    assert torch.equal(torch.cat([first.stage, second.stage]), expected)


@pytest.mark.parametrize("mode", MODES)
def test_decisions_are_counted_the_same_in_every_mode(mode: str) -> None:
    collector, _, _ = make(mode)
    collect(collector, 3)
    assert collector.decisions == 3 * STEPS * ENVS


@pytest.mark.parametrize("mode", ["overlap", "double"])
def test_every_mode_collects_what_the_serial_one_does(mode: str) -> None:
    halves = [RecordingEnvs(ENVS // 2, seed=part) for part in range(2)]
    twice = [RecordingEnvs(ENVS // 2, seed=part) for part in range(2)]
    config = CollectConfig(num_envs=ENVS, rollout_steps=STEPS, double_buffer=True)
    policy = make_policy()
    frozen = take_snapshot(policy, 0)
    plain = Collector(halves, policy, lambda: frozen, steps=STEPS, stack=STACK, seed=5)
    plain.start()
    if mode == "overlap":
        config = CollectConfig(num_envs=ENVS, rollout_steps=STEPS, double_buffer=True, overlap_collect=True)
    other = make_collector(config, twice, policy, lambda: frozen, seed=5, stack=STACK)
    other.start()
    for one, two in zip(collect(plain, 3), collect(other, 3), strict=True):
        for name, value in one.state_dict().items():
            if name != "state0":
                assert torch.equal(value, two.state_dict()[name]), name


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


def test_finished_episodes_are_told_with_their_own_numbers() -> None:
    records: list[dict[str, Any]] = []
    steps: list[slice] = []
    listeners = Listeners(on_episode=records.append, on_step=lambda columns, _: steps.append(columns))
    collector, _, _ = make("double", listeners=listeners)
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
    assert len(steps) == 3 * STEPS * 2


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
    with pytest.raises(ConfigError, match="does not go with 1"):
        make("double", envs=[CountingEnvs(ENVS)])


@pytest.mark.parametrize("mode", MODES)
def test_what_a_step_brought_is_told_while_the_next_one_is_under_way(mode: str) -> None:
    told: list[tuple[int, bool]] = []

    def under_way(columns: slice) -> bool:
        return envs[0 if columns.start == 0 else -1].pending is not None

    listeners = Listeners(
        on_step=lambda columns, info: told.append((columns.start, under_way(columns))),
    )
    config = MODES[mode]
    envs = [RecordingEnvs(ENVS // 2, seed=part) for part in range(2)]
    if not config.get("double_buffer"):
        envs = [RecordingEnvs(ENVS)]
    collector, _, _ = make(mode, envs=envs, listeners=listeners)
    collect(collector, 2)
    # With overlap more than the rollouts handed out was collected; the last of it may have been cut short.
    per_rollout = STEPS * len(envs)
    assert len(told) >= 2 * per_rollout
    for start in {start for start, _ in told}:
        lane = [pending for at, pending in told if at == start][: 2 * STEPS]
        # Behind the last step of a rollout nothing is sent before the next one begins.
        assert lane == ([True] * (STEPS - 1) + [False]) * 2
