"""Schedules count decisions; adaptation reacts to progress, within bounds and not too often."""

from __future__ import annotations

import pytest

from warpzone.errors import ConfigError
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.learn.schedules import Adaptation, AdaptiveConfig, scheduled

from .rollouts import make_policy, random_rollout


def test_cosine_warms_up_then_falls_and_ends_at_its_final_value() -> None:
    values = [scheduled("cosine", u, 100, 1.0, 0.1, warmup=10) for u in range(120)]
    assert values[:10] == pytest.approx([(u + 1) / 10 for u in range(10)])
    assert values[10] == 1.0
    assert values[10:] == sorted(values[10:], reverse=True)
    assert values[99] == pytest.approx(0.1)
    assert values[119] == pytest.approx(0.1)
    assert values[54] == pytest.approx(0.55, abs=0.02)


def test_linear_is_linear_and_constant_is_constant() -> None:
    assert [scheduled("linear", u, 5, 1.0, 0.0) for u in range(6)] == pytest.approx(
        [1, 0.75, 0.5, 0.25, 0, 0]
    )
    assert {scheduled("constant", u, 5, 0.3, 0.0) for u in range(6)} == {0.3}


def test_a_schedule_in_decisions_is_that_in_updates() -> None:
    for name in ("linear", "cosine"):
        for update in range(12):
            in_updates = scheduled(name, update, 10, 1.0, 0.1, warmup=3)  # type: ignore[arg-type]
            in_decisions = scheduled(name, 64 * update, 640, 1.0, 0.1, step=64, warmup=192)  # type: ignore[arg-type]
            assert in_decisions == in_updates


@pytest.mark.parametrize("num_envs", [4, 8])
def test_annealing_goes_by_decisions_whatever_the_number_of_environments(num_envs: int) -> None:
    policy = make_policy()
    config = LearnConfig(anneal_steps=24 * 48, learning_rate=1e-3, lr_final_fraction=0.0, minibatches=2)
    learner = Learner(policy, config, total_updates=1000)
    while learner.decisions < 24 * 24:
        learner.update(random_rollout(policy, num_envs=num_envs))
    # Half way; the last update, at the end but one, has the final value.
    assert learner.learning_rate == pytest.approx(5e-4, rel=0.05)
    assert learner.learning_rate == pytest.approx(1e-3 * (1 - 24 * 24 / (24 * 48 - 6 * num_envs)))


def test_annealing_in_updates_still_works_and_overrides() -> None:
    config = LearnConfig(anneal_updates=600, anneal_steps=5)
    assert config.in_decisions(2048).anneal_steps == 600 * 2048
    assert config.in_decisions(2048).anneal_updates == 0
    learners = [
        Learner(make_policy(), c, decisions_per_update=2048) for c in (config, config.in_decisions(2048))
    ]
    for learner in learners:
        learner.decisions = 300 * 2048
    assert learners[0].learning_rate == learners[1].learning_rate == 5e-4 * (1 - 0.9 * 300 / 599)


def test_a_run_of_unknown_length_keeps_its_start_value() -> None:
    assert scheduled("cosine", 10_000, 0, 0.5, 0.0) == 0.5


def adapted(progress: list[float], **settings: object) -> Adaptation:
    config = AdaptiveConfig(
        adaptive_entropy=True,
        adaptive_lr=True,
        adaptive_window=5,
        **settings,  # type: ignore[arg-type]
    )
    adaptation = Adaptation(config)
    for value in progress:
        adaptation.observe(value)
    return adaptation


def test_a_plateau_raises_entropy_up_to_its_bound() -> None:
    adaptation = adapted([1.0] * 200, adaptive_cooldown=2)
    assert adaptation.entropy_scale == 4.0
    assert adaptation.lr_scale == 1.0


def test_progress_lowers_entropy_down_to_its_bound() -> None:
    assert adapted([1.1**u for u in range(200)], adaptive_cooldown=2).entropy_scale == 0.25


def test_falling_back_lowers_the_learning_rate_and_progress_restores_it() -> None:
    falling = [100 * 0.95**u for u in range(60)]
    adaptation = adapted(falling, adaptive_cooldown=2)
    assert adaptation.lr_scale == 0.1
    for u in range(200):
        adaptation.observe(1.05**u)
    assert adaptation.lr_scale == 1.0


def test_changes_wait_for_the_cool_down() -> None:
    adaptation = adapted([1.0] * 10, adaptive_cooldown=20)
    assert adaptation.entropy_scale == 1.25
    for _ in range(19):
        adaptation.observe(1.0)
    assert adaptation.entropy_scale == 1.25
    adaptation.observe(1.0)
    assert adaptation.entropy_scale == pytest.approx(1.25**2)


def test_nothing_changes_unless_asked_for() -> None:
    adaptation = Adaptation(AdaptiveConfig(adaptive_window=2, adaptive_cooldown=0))
    for _ in range(50):
        adaptation.observe(1.0)
    assert (adaptation.entropy_scale, adaptation.lr_scale) == (1.0, 1.0)


def test_adaptation_goes_on_from_a_checkpoint() -> None:
    first = adapted([1.0] * 37, adaptive_cooldown=7)
    second = Adaptation(first.config)
    second.load_state_dict(first.state_dict())
    for adaptation in (first, second):
        for _ in range(20):
            adaptation.observe(1.0)
    assert first.state_dict() == second.state_dict()


def test_bounds_must_enclose_one() -> None:
    with pytest.raises(ConfigError, match="adaptive_lr_min"):
        AdaptiveConfig(adaptive_lr_min=2.0, adaptive_lr_max=3.0)


def test_success_anneals_learning_rate_and_entropy_ahead_of_the_schedule() -> None:
    config = LearnConfig(anneal_by_success=True, anneal_updates=101, learning_rate=1.0, lr_final_fraction=0.0)
    learner = Learner(make_policy(), config)
    rates = []
    for learner.success in (0.0, 0.5, 1.0, 0.2):
        rates.append(learner.learning_rate)
    assert rates == pytest.approx([1.0, 0.7, 0.4, 0.88])
    learner.success = 0.5
    assert learner.entropy_coef == pytest.approx((config.entropy_coef + config.entropy_final) / 2)
    learner.decisions = 80
    assert learner.learning_rate == pytest.approx(0.2)
    assert (
        Learner(make_policy(), LearnConfig(anneal_updates=101)).learning_rate == LearnConfig().learning_rate
    )


def test_a_schedule_by_success_that_is_over_begins_anew_twice_as_long() -> None:
    config = LearnConfig(anneal_by_success=True, anneal_updates=100, learning_rate=1.0, lr_final_fraction=0.0)
    learner = Learner(make_policy(), config)
    rates = {}
    for learner.decisions in (99, 100, 200, 299, 300, 500, 699, 700):
        rates[learner.decisions] = learner.learning_rate
    halfway = {200: 1 - 100 / 199, 500: 1 - 200 / 399}
    assert rates == pytest.approx({99: 0.0, 100: 1.0, 299: 0.0, 300: 1.0, 699: 0.0, 700: 1.0, **halfway})
    plain = Learner(make_policy(), LearnConfig(anneal_updates=100, learning_rate=1.0, lr_final_fraction=0.0))
    plain.decisions = 500
    assert plain.learning_rate == 0.0


def test_a_schedule_that_begins_anew_goes_back_no_further_than_the_best_success_allows() -> None:
    config = LearnConfig(anneal_by_success=True, anneal_updates=100, learning_rate=1.0, lr_final_fraction=0.0)
    learner = Learner(make_policy(), config)
    learner.decisions, learner.success = 50, 0.8
    learner.update(random_rollout(learner.policy))
    learner.success, learner.decisions, learner.per_update = 0.1, 50, 1
    assert learner.learning_rate == pytest.approx(1 - 50 / 99)
    other = Learner(make_policy(seed=1), config)
    other.load_state_dict(learner.state_dict())
    for one in (learner, other):
        rates = {}
        for one.decisions in (100, 200, 299, 300):
            rates[one.decisions] = one.learning_rate
        assert rates == pytest.approx({100: 0.2, 200: 0.2, 299: 0.0, 300: 0.2}, abs=0.01)


def test_the_best_success_is_slowly_forgotten_so_that_exploration_comes_back() -> None:
    learner = Learner(make_policy(), LearnConfig(anneal_by_success=True))
    learner.success = 0.8
    learner.update(random_rollout(learner.policy))
    learner.success = 0.1
    for _ in range(3):
        learner.update(random_rollout(learner.policy))
    assert learner.best_success == pytest.approx(0.8 - 3e-7 * learner.per_update, abs=1e-12)
    learner.success = 0.9
    learner.update(random_rollout(learner.policy))
    assert learner.best_success == 0.9


def test_success_is_saved_so_that_a_resumed_run_has_the_same_rates() -> None:
    learner = Learner(make_policy(), LearnConfig(anneal_by_success=True, anneal_updates=101))
    learner.success = 0.5
    other = Learner(make_policy(seed=1), LearnConfig(anneal_by_success=True, anneal_updates=101))
    other.load_state_dict(learner.state_dict())
    assert other.learning_rate == learner.learning_rate
