"""The learner: presets, exactness, determinism, resume, and the numbers it reports."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.learn.rollouts import make_policy, random_rollout
from warpzone.errors import ConfigError
from warpzone.learn.config import LearnConfig, ReplayConfig
from warpzone.learn.learner import Learner
from warpzone.learn.rollout import Rollout
from warpzone.learn.schedules import AdaptiveConfig
from warpzone.model.policy import Policy

MEMORIES = ["none", "gru", "lstm", "transformer"]
ALGOS = ["a3c", "impala", "appo", "ppo"]
METRICS = {
    "loss_total",
    "loss_policy",
    "loss_value",
    "entropy",
    "learning_rate",
    "grad_norm",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "policy_lag",
    "learn_time",
}


def learner_with(policy: Policy | None = None, replay: Any = None, **settings: Any) -> Learner:
    config = LearnConfig(**({"minibatches": 2} | settings))
    return Learner(policy or make_policy(), config, replay=replay, total_updates=20, seed=3)


def weights_of(learner: Learner) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()])


def test_a_preset_is_overridden_by_what_is_set_by_hand() -> None:
    assert LearnConfig(algo="impala").recipe().targets == "vtrace"
    recipe = LearnConfig(algo="impala", targets="gae", epochs=7).recipe()
    assert (recipe.targets, recipe.epochs, recipe.objective) == ("gae", 7, "plain")


@pytest.mark.parametrize("algo", ALGOS)
@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_an_update_moves_the_weights_and_reports_finite_numbers(algo: str, recurrent_type: str) -> None:
    policy = make_policy(recurrent_type, heads=2)
    learner = learner_with(policy, algo=algo, normalise_values=True, normalise_advantages="stage")
    before = weights_of(learner)
    metrics = learner.update(random_rollout(policy, stages=2))
    assert set(metrics) >= METRICS
    assert all(math.isfinite(value) for value in metrics.values())
    assert not torch.equal(before, weights_of(learner))


def test_many_stages_can_share_one_normalised_value_head() -> None:
    policy = make_policy(heads=1)
    learner = learner_with(policy, normalise_values=True, normalise_advantages="stage")
    metrics = learner.update(random_rollout(policy, stages=5))
    assert math.isfinite(metrics["loss_value"])
    assert policy.value.std.item() != 1.0


@pytest.mark.parametrize("recurrent_type", ["none", "gru"])
def test_slices_of_a_minibatch_give_the_same_step(recurrent_type: str) -> None:
    stepped = []
    for grad_accum in (1, 2):
        policy = make_policy(recurrent_type)
        learner = learner_with(policy, grad_accum=grad_accum, epochs=1, minibatches=1, adam_eps=1e-2)
        learner.update(random_rollout(policy))
        stepped.append(weights_of(learner))
    torch.testing.assert_close(*stepped, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_before_the_first_step_nothing_has_moved(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    learner = learner_with(policy, epochs=1, minibatches=1)
    metrics = learner.update(random_rollout(policy))
    assert metrics["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert metrics["clip_fraction"] == 0
    assert metrics["entropy"] == pytest.approx(math.log(3), abs=0.01)


def run(learner: Learner, updates: range) -> list[dict[str, float]]:
    collected = []
    for update in updates:
        rollout = random_rollout(make_policy(learner.policy.config.recurrent_type), seed=update)
        rollout.version.fill_(max(0, update - 1))
        metrics = learner.update(rollout)
        learner.adaptation.observe(metrics["explained_variance"])
        collected.append({k: v for k, v in metrics.items() if "time" not in k})
    return collected


@pytest.mark.parametrize(("algo", "recurrent_type"), [("ppo", "none"), ("appo", "gru"), ("impala", "lstm")])
@pytest.mark.parametrize("gpu_sample", [False, True])
def test_the_same_seed_gives_the_same_numbers_and_a_resumed_run_goes_on_exactly(
    algo: str, recurrent_type: str, gpu_sample: bool
) -> None:
    def fresh() -> Learner:
        return Learner(
            make_policy(recurrent_type),
            LearnConfig(algo=algo, minibatches=2, normalise_values=True),  # type: ignore[arg-type]
            replay=ReplayConfig(
                per=True, per_capacity=96, per_batch_size=12, per_gpu_sample=gpu_sample, per_checkpoint=True
            ),
            adaptive=AdaptiveConfig(adaptive_entropy=True, adaptive_window=2, adaptive_cooldown=1),
            total_updates=10,
            seed=7,
        )

    straight, again = fresh(), fresh()
    whole = run(straight, range(8))
    first = run(again, range(4))
    torch.manual_seed(99)
    resumed = fresh()
    resumed.load_state_dict(again.state_dict())
    rest = run(resumed, range(4, 8))
    assert first + rest == whole
    assert torch.equal(weights_of(straight), weights_of(resumed))
    for learner in (straight, again, resumed):
        learner.close()


def test_a_checkpoint_survives_a_file(tmp_path: Any) -> None:
    learner = learner_with()
    learner.update(random_rollout(learner.policy))
    torch.save(learner.state_dict(), tmp_path / "learner.pt")
    other = learner_with(make_policy(seed=5))
    other.load_state_dict(torch.load(tmp_path / "learner.pt", weights_only=True))
    assert torch.equal(weights_of(learner), weights_of(other))
    assert other.version == 1


def test_the_snapshot_is_the_last_update_and_never_changes() -> None:
    policy = make_policy()
    learner = learner_with(policy)
    first = learner.policy_snapshot()
    kept = [tensor.clone() for tensor in first.weights]
    learner.update(random_rollout(policy))
    second = learner.policy_snapshot()
    assert (first.version, second.version) == (0, 1)
    assert all(torch.equal(a, b) for a, b in zip(first.weights, kept, strict=True))
    actor = make_policy(seed=9)
    actor.install(second)
    assert all(torch.equal(a, b) for a, b in zip(actor.parameters(), policy.parameters(), strict=True))


def test_schedules_advance_once_an_update() -> None:
    policy = make_policy()
    learner = learner_with(policy, warmup_updates=4, lr_schedule="cosine", learning_rate=1.0e-3)
    rates = [learner.update(random_rollout(policy))["learning_rate"] for _ in range(20)]
    assert rates[:4] == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3])
    assert rates[-1] == pytest.approx(1e-4)


def test_passes_stop_once_the_policy_has_moved_far_enough() -> None:
    def epochs(target_kl: float) -> float:
        policy = make_policy()
        learner = learner_with(policy, epochs=6, learning_rate=0.01, target_kl=target_kl)
        return learner.update(random_rollout(policy))["epochs"]

    assert epochs(1e-4) < 6
    assert epochs(0) == 6


def lagging_rollout(policy: Policy) -> Rollout:
    """A rollout by other weights than the learner's, one update old."""
    return random_rollout(make_policy(policy.config.recurrent_type, seed=1))


@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_vtrace_judges_a_lagging_rollout_by_the_weights_of_now(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    learner = learner_with(policy, algo="appo", normalise_rewards=False, normalise_advantages="none")
    learner.version = 1
    rollout = lagging_rollout(policy)
    samples = learner._prepare(rollout, lagging=True)
    fresh = random_rollout(policy)  # the same steps, valued by the learner's own weights
    torch.testing.assert_close(samples.floats[0], fresh.logp, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(samples.floats[3], fresh.values, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(fresh.logp, rollout.logp, atol=1e-4)


@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_the_divergence_of_a_lagging_update_is_only_its_own(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    learner = learner_with(policy, algo="appo", epochs=1, minibatches=1)
    learner.version = 1
    rollout = lagging_rollout(policy)
    assert (rollout.logp - random_rollout(policy).logp).abs().max() > 1e-3
    assert learner.update(rollout)["approx_kl"] == pytest.approx(0, abs=1e-7)


@torch.no_grad()
@pytest.mark.parametrize("recurrent_type", MEMORIES)
def test_vtrace_values_truncated_episodes_by_the_weights_of_now(recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    learner = learner_with(policy, algo="appo", normalise_rewards=False, normalise_advantages="none")
    rollout = random_rollout(make_policy(recurrent_type, seed=1), end_rate=0.8)
    expected = torch.zeros_like(rollout.values)
    for steps, envs, obs, state in rollout.finals:
        for i, (t, n) in enumerate(zip(steps.tolist(), envs.tolist(), strict=True)):
            memory = tuple(part[i : i + 1] for part in state)
            _, expected[t, n], _ = policy.act(obs[i : i + 1], memory, torch.tensor([False]))
    assert (expected - rollout.truncation_value)[rollout.truncated].abs().min() > 0
    torch.testing.assert_close(learner._truncation_values(rollout), expected, atol=1e-5, rtol=1e-5)
    lagged = learner._prepare(rollout, lagging=True).floats[2]
    rollout.truncation_value.copy_(expected)
    rollout.finals.clear()
    torch.testing.assert_close(learner._prepare(rollout, lagging=True).floats[2], lagged)


@pytest.mark.parametrize("algo", ALGOS)
def test_a_stall_can_be_an_end_for_the_value_target(algo: str) -> None:
    policy = make_policy()
    rollout, ended = random_rollout(policy, end_rate=0.8), random_rollout(policy, end_rate=0.8)
    rollout.stalled.copy_(rollout.truncated)
    rollout.stalled[:, :2] = False
    ended.terminated |= rollout.stalled
    ended.truncated &= ~rollout.stalled
    assert rollout.stalled.any()
    assert ended.truncated.any()
    settings: dict[str, Any] = {"algo": algo, "normalise_rewards": False}
    bootstrapped = learner_with(policy, **settings)._prepare(rollout, lagging=False).floats
    as_end = learner_with(policy, bootstrap_stalls=False, **settings)._prepare(rollout, lagging=False).floats
    expected = learner_with(policy, **settings)._prepare(ended, lagging=False).floats
    torch.testing.assert_close(as_end, expected)
    assert not torch.allclose(as_end, bootstrapped)


def test_policy_lag_is_reported_exactly() -> None:
    policy = make_policy()
    learner = learner_with(policy)
    learner.version = 5
    rollout = random_rollout(policy)
    rollout.version.fill_(3)
    rollout.version[:, :2] = 4
    assert learner.update(rollout)["policy_lag"] == 1.5


def test_replay_is_fed_by_every_update_and_sampled_on_every_nth() -> None:
    policy = make_policy()
    replay = ReplayConfig(per=True, per_capacity=480, per_sample_interval=3, per_batch_size=8)
    learner = learner_with(policy, replay=replay)
    metrics = [learner.update(random_rollout(policy, seed=update)) for update in range(7)]
    assert [m["replay_push_total"] for m in metrics] == [24 * (update + 1) for update in range(7)]
    sampled = [False, False, True, False, False, True, False]
    assert ["loss_per" in m for m in metrics] == sampled
    assert ["replay_sample_time_ms" in m for m in metrics] == sampled
    learner.close()


def test_the_interval_has_the_means_of_its_updates_also_across_a_resume() -> None:
    policy = make_policy()
    learner = learner_with(policy)
    metrics = [learner.update(random_rollout(policy, seed=0))]
    resumed = learner_with(make_policy(seed=4))
    resumed.load_state_dict(learner.state_dict())
    metrics.append(resumed.update(random_rollout(policy, seed=1)))
    means = resumed.interval.read()
    for name in ("loss_total", "entropy", "approx_kl", "grad_norm"):
        assert means[name] == pytest.approx(sum(m[name] for m in metrics) / 2)
    assert means["learning_rate"] == metrics[-1]["learning_rate"]


def test_a_checkpoint_without_a_count_of_decisions_goes_on_at_its_place_on_the_schedule() -> None:
    learner = learner_with()
    for _ in range(5):
        learner.update(random_rollout(learner.policy))
    state = learner.state_dict()
    del state["decisions"], state["interval"]
    resumed = Learner(make_policy(), LearnConfig(), total_updates=20, decisions_per_update=24)
    resumed.load_state_dict(state)
    assert resumed.learning_rate == learner.learning_rate < LearnConfig().learning_rate


@pytest.mark.parametrize(
    ("settings", "recurrent_type"),
    [({"minibatch_size": 7}, "none"), ({"minibatch_size": 8}, "gru"), ({"grad_accum": 5}, "none")],
)
def test_a_batch_that_does_not_divide_is_one_sentence(settings: Any, recurrent_type: str) -> None:
    policy = make_policy(recurrent_type)
    with pytest.raises(ConfigError, match="does not divide"):
        learner_with(policy, **settings).update(random_rollout(policy))


@pytest.mark.parametrize(
    ("field", "value"), [("algo", "dqn"), ("gamma", 1.5), ("epochs", 0), ("learning_rate", 0.0), ("clip", -1)]
)
def test_settings_out_of_range_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=field):
        LearnConfig(**{field: value})
