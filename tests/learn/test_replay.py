"""The replay draws exactly in proportion to priority and gives back exactly what was stored."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.learn.rollouts import make_policy, random_rollout
from warpzone.errors import CheckpointError, ConfigError
from warpzone.learn import replay as replay_module
from warpzone.learn.config import ReplayConfig
from warpzone.learn.priorities import PrefixSums, Priorities, SumTree, kl_to_exact
from warpzone.learn.replay import PrioritisedReplay, format_replay_stat
from warpzone.learn.rollout import Rollout

SAMPLERS = {"tree": SumTree, "prefix": lambda capacity: PrefixSums(capacity, "cpu")}
PER_ROLLOUT = 24


def sampler(name: str, weights: list[float] | np.ndarray) -> Priorities:
    priorities: Priorities = SAMPLERS[name](len(weights))
    priorities.set(torch.arange(len(weights)), torch.tensor(np.asarray(weights, dtype=np.float64)))
    return priorities


def slow_draw(weights: np.ndarray, points: np.ndarray) -> list[int]:
    """Walk along the items until their weights add up to each point."""
    drawn = []
    for point in points:
        rest, last = point, 0
        for i, weight in enumerate(weights):
            if weight > 0:
                last = i
                if rest < weight:
                    break
                rest -= weight
        drawn.append(last)
    return drawn


@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=50, deadline=None)
@given(
    # Whole numbers, so that no order of adding them up can differ.
    weights=st.lists(st.integers(0, 9), min_size=1, max_size=40).filter(any),
    seed=st.integers(0, 1000),
)
def test_drawing_matches_walking_along_the_items(name: str, weights: list[int], seed: int) -> None:
    n = 16
    drawn, probability = sampler(name, weights).draw(n, torch.Generator().manual_seed(seed))
    jitter = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).numpy()
    exact = np.asarray(weights, dtype=np.float64)
    assert drawn.tolist() == slow_draw(exact, (np.arange(n) + jitter) / n * exact.sum())
    np.testing.assert_allclose(probability, exact[drawn] / exact.sum(), atol=1e-12)
    assert (exact[drawn] > 0).all()


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_distribution_drawn_is_the_exact_one(name: str) -> None:
    weights = np.random.default_rng(0).pareto(1.5, size=5000)
    priorities = sampler(name, weights)
    assert kl_to_exact(priorities, 400_000, torch.Generator().manual_seed(0)) < 1e-3


def test_a_wrong_sampler_shows_in_the_divergence() -> None:
    class Uniform(PrefixSums):
        def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
            index = torch.randint(0, len(self.weights), (n,), generator=generator)
            return index, torch.ones(n)

    uniform = Uniform(1000, "cpu")
    uniform.set(torch.arange(1000), torch.linspace(0.1, 2, 1000))
    assert kl_to_exact(uniform, 100_000, torch.Generator().manual_seed(0)) > 0.05


def test_changed_priorities_change_the_tree_all_the_way_up() -> None:
    tree = sampler("tree", [1.0] * 13)
    tree.set(torch.tensor([3, 3, 12]), torch.tensor([5.0, 5.0, 0.0], dtype=torch.float64))
    assert isinstance(tree, SumTree)
    assert tree.sums[1] == 11 + 5
    assert tree.leaves.tolist() == [1, 1, 1, 5, *[1] * 8, 0]


def make_replay(rollout: Rollout, recurrent: bool = False, **settings: Any) -> PrioritisedReplay:
    config = ReplayConfig(per=True, **({"per_capacity": 3 * PER_ROLLOUT, "per_prefetch": False} | settings))
    return PrioritisedReplay(config, rollout, recurrent=recurrent, seed=1)


def filled(
    recurrent_type: str = "none", pushes: int = 3, **settings: Any
) -> tuple[PrioritisedReplay, list[Rollout]]:
    policy = make_policy(recurrent_type, stack=3)
    rollouts = [random_rollout(policy, seed=seed) for seed in range(pushes)]
    replay = make_replay(rollouts[0], recurrent_type != "none", **settings)
    for rollout in rollouts:
        replay.push(rollout, rollout.rewards + 1, rollout.rewards)
    return replay, rollouts


@pytest.mark.parametrize("gpu_sample", [False, True])
def test_decisions_come_back_as_they_were_stored(gpu_sample: bool) -> None:
    replay, rollouts = filled(pushes=5, per_gpu_sample=gpu_sample, per_batch_size=64)
    (replayed,) = replay.sample()
    batch = replayed.batch
    for i, (item, stored) in enumerate(
        zip(replayed.items.tolist(), replayed.stored_at.tolist(), strict=True)
    ):
        rollout = rollouts[stored]
        t, n = divmod(item % PER_ROLLOUT, 4)
        assert stored >= 2, "the oldest are overwritten first"
        expected = rollout.stacks(torch.tensor(t), torch.tensor(n))
        assert torch.equal(batch.obs[i], expected)
        assert batch.integers[0, i] == rollout.actions[t, n]
        assert batch.floats[0, i].item() == pytest.approx(rollout.logp[t, n].item(), rel=1e-3)
        assert batch.floats[2, i].item() == pytest.approx(
            rollout.rewards[t, n].item() + 1, rel=1e-3, abs=1e-3
        )


@pytest.mark.parametrize("recurrent_type", ["gru", "transformer"])
def test_sequences_come_back_whole_with_the_memory_they_began_with(recurrent_type: str) -> None:
    replay, rollouts = filled(recurrent_type, per_batch_size=18)
    (replayed,) = replay.sample()
    batch = replayed.batch
    assert batch.starts is not None
    for i, (item, stored) in enumerate(
        zip(replayed.items.tolist(), replayed.stored_at.tolist(), strict=True)
    ):
        rollout, n = rollouts[stored], item % 4
        assert torch.equal(batch.obs[:, i], rollout.sequences(torch.tensor([n]))[:, 0])
        assert torch.equal(batch.starts[:, i], rollout.starts[:, n])
        assert all(torch.equal(a[i], b[n]) for a, b in zip(batch.state, rollout.state0, strict=True))
    assert batch.obs.shape[:2] == (6, 3)


def test_importance_weights_undo_the_sampling_at_beta_one() -> None:
    replay, _ = filled(per_beta=1.0, per_alpha=1.0, per_batch_size=48)
    (replayed,) = replay.sample()
    leaves = replay.priorities.leaves
    raw = 1 / leaves[replayed.items]
    assert replayed.batch.weight is not None
    torch.testing.assert_close(replayed.batch.weight.double(), raw / raw.max(), atol=1e-5, rtol=1e-5)


def test_beta_is_annealed_over_updates() -> None:
    replay, _ = filled(per_beta=0.4, per_beta_updates=10)
    betas = []
    for update in (0, 5, 10, 20):
        replay.anneal(update)
        betas.append(replay.beta)
    assert betas == pytest.approx([0.4, 0.7, 1.0, 1.0])


@pytest.mark.parametrize("gpu_sample", [False, True])
def test_new_priorities_reach_only_items_that_are_still_there(gpu_sample: bool) -> None:
    replay, rollouts = filled(per_gpu_sample=gpu_sample, per_batch_size=64, per_alpha=1.0)
    (replayed,) = replay.sample()
    replay.push(rollouts[0], rollouts[0].rewards, rollouts[0].rewards)  # overwrites the first rollout
    before = replay.priorities.leaves.clone()
    replay.update_priorities(replayed, torch.full((64,), 100.0))
    changed = torch.zeros_like(before, dtype=torch.bool)
    changed[replayed.items[replayed.stored_at > 0]] = True
    assert torch.equal(replay.priorities.leaves[~changed], before[~changed])
    assert (replay.priorities.leaves[changed] > 100).all()
    assert (replayed.stored_at == 0).any()


def test_statistics_have_the_names_and_meaning_of_the_metrics() -> None:
    replay, rollouts = filled(pushes=2, per_batch_size=48, per_alpha=1.0)
    replay.sample()
    (second,) = replay.sample()
    stats = replay.stats()
    errors = (
        torch.cat([r.rewards.flatten() for r in rollouts]).abs().numpy() + replay_module.SMALLEST_PRIORITY
    )
    assert stats["replay_size"] == 2 * PER_ROLLOUT
    assert stats["replay_capacity"] == 3 * PER_ROLLOUT
    assert stats["replay_fill_rate"] == pytest.approx(2 / 3)
    assert stats["replay_push_total"] == 2 * PER_ROLLOUT
    assert stats["replay_last_unique_ratio"] == pytest.approx(len(set(second.items.tolist())) / 48)
    assert 0 < stats["replay_avg_unique_ratio"] <= 1
    assert stats["replay_priority_mean"] == pytest.approx(errors.mean(), rel=1e-5)
    assert stats["replay_priority_p90"] == pytest.approx(np.quantile(errors, 0.9), rel=1e-5)
    assert stats["replay_sample_time_ms"] > 0


def test_the_log_line_has_the_format_of_the_contract() -> None:
    stats = {
        "replay_fill_rate": 0.5,
        "replay_last_unique_ratio": 0.991,
        "replay_avg_unique_ratio": 1.0,
    }
    assert format_replay_stat(stats) == "[replay][stat] fill=50.0% unique=99.1% avg_unique=100.0%"


def test_scalars_are_half_precision_unless_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled(pushes=1)[0].kept["returns"].dtype == torch.float16
    monkeypatch.setenv("MARIO_PER_FP16_SCALARS", "0")
    assert filled(pushes=1)[0].kept["returns"].dtype == torch.float32


def test_capacity_adapts_to_the_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = random_rollout(make_policy())
    generous = make_replay(rollout, per_capacity=10 * PER_ROLLOUT)
    assert generous.capacity == 10 * PER_ROLLOUT
    monkeypatch.setattr(replay_module, "decisions_that_fit", lambda *_: 4 * PER_ROLLOUT + 5)
    assert make_replay(rollout, per_capacity=10 * PER_ROLLOUT).capacity == 4 * PER_ROLLOUT


@pytest.mark.parametrize("gpu_sample", [False, True])
@pytest.mark.parametrize("prefetch", [False, True])
def test_a_replay_goes_on_from_a_checkpoint_as_if_never_stopped(gpu_sample: bool, prefetch: bool) -> None:
    settings_ = {"per_gpu_sample": gpu_sample, "per_prefetch": prefetch}
    first, rollouts = filled(**settings_)
    first.sample()
    first.prefetch()
    state = first.state_dict()
    second = make_replay(rollouts[0], **settings_)
    second.load_state_dict(state)
    for replay in (first, second):
        replay.push(rollouts[1], rollouts[1].rewards, rollouts[1].rewards)
    assert torch.equal(first.sample()[0].items, second.sample()[0].items)
    assert torch.equal(first.sample()[0].batch.obs, second.sample()[0].batch.obs)
    assert first.stats()["replay_avg_unique_ratio"] == second.stats()["replay_avg_unique_ratio"]
    first.close()
    second.close()


def test_a_checkpoint_of_another_size_is_one_sentence() -> None:
    replay, rollouts = filled()
    with pytest.raises(CheckpointError, match="per_capacity"):
        make_replay(rollouts[0], per_capacity=PER_ROLLOUT).load_state_dict(replay.state_dict())


def test_prefetched_batches_are_those_that_would_have_been_drawn() -> None:
    plain, _ = filled()
    ahead, _ = filled(per_prefetch=True)
    ahead.prefetch()
    assert torch.equal(plain.sample()[0].items, ahead.sample()[0].items)
    ahead.close()


def test_only_the_next_push_waits_for_what_is_being_prefetched() -> None:
    replay, rollouts = filled(per_prefetch=True)
    draw, may_draw, has_drawn = replay.priorities.draw, threading.Event(), threading.Event()

    def slowly(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        may_draw.wait(60)
        has_drawn.set()
        return draw(n, generator)

    replay.priorities.draw = slowly  # type: ignore[method-assign]
    replay.prefetch()
    replay.stats()
    replay.state_dict()
    assert not has_drawn.is_set()
    may_draw.set()
    replay.push(rollouts[0], rollouts[0].rewards, rollouts[0].rewards)
    assert has_drawn.is_set()
    assert "replay_sample_time_ms" not in replay.stats()
    replay.sample()
    assert replay.stats()["replay_sample_time_ms"] > 0
    replay.close()


def test_the_time_reported_is_that_of_sampling_also_where_it_was_done_ahead() -> None:
    replay, _ = filled(per_prefetch=True)
    draw = replay.priorities.draw

    def slowly(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        time.sleep(0.05)
        return draw(n, generator)

    replay.priorities.draw = slowly  # type: ignore[method-assign]
    replay.prefetch()
    replay._await_prefetch()
    replay.sample()
    assert replay.stats()["replay_sample_time_ms"] >= 50
    replay.close()


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="per_sample_interval"):
        ReplayConfig(per_sample_interval=0)
    with pytest.raises(ConfigError, match="per_alpha"):
        ReplayConfig(per_alpha=1.5)
