"""Means over the interval between two records."""

from __future__ import annotations

from warpzone.learn.interval import IntervalMeans


def test_losses_are_means_and_settings_are_the_last() -> None:
    interval = IntervalMeans()
    interval.add({"loss_total": 1.0, "learning_rate": 3e-4, "replay_size": 24.0})
    interval.add({"loss_total": 4.0, "learning_rate": 2e-4, "replay_size": 48.0})
    assert interval.read() == {"loss_total": 2.5, "learning_rate": 2e-4, "replay_size": 48.0}
    assert interval.read() == {}


def test_updates_that_did_not_sample_do_not_count() -> None:
    interval = IntervalMeans()
    interval.add({"loss_per": 1.0, "replay_sample_time_ms": 2.0, "entropy": 1.0})
    interval.add({"entropy": 2.0})
    interval.add({"loss_per": 2.0, "replay_sample_time_ms": 4.0, "entropy": 6.0})
    assert interval.read() == {"loss_per": 1.5, "replay_sample_time_ms": 3.0, "entropy": 3.0}


def test_an_interval_goes_on_from_a_checkpoint_without_its_timings() -> None:
    first, second = IntervalMeans(), IntervalMeans()
    first.add({"entropy": 1.0, "learn_time": 0.1})
    second.load_state_dict(first.state_dict())
    second.add({"entropy": 2.0, "learn_time": 0.3})
    assert second.read() == {"entropy": 1.5, "learn_time": 0.3}
