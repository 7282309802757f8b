"""Which stage comes next: by what it lacks, in decisions, never starving one."""

from __future__ import annotations

import numpy as np
import pytest

from warpzone.starts.curriculum import FLOOR, Curriculum

STAGES = ["1-1", "1-2", "1-3", "1-4"]


def played(
    clear: list[float], lengths: list[int], kind: str = "progress", episodes: int = 2000
) -> Curriculum:
    """A curriculum that has seen every stage cleared at its own rate."""
    made = Curriculum(kind, STAGES)  # type: ignore[arg-type]
    random = np.random.default_rng(0)
    for _ in range(episodes):
        for stage, (rate, length) in enumerate(zip(clear, lengths, strict=True)):
            made.observe(stage, bool(random.random() < rate), 1000, length)
    return made


def decisions(made: Curriculum) -> np.ndarray:
    """The shares of the stages in decisions, if episodes stay as long as they were."""
    spent = made.weights() * made.length
    return spent / spent.sum()


@pytest.mark.parametrize("kind", ["uniform", "fixed"])
def test_without_it_all_stages_are_drawn_alike(kind: str) -> None:
    made = played([1.0, 0.5, 0.0, 0.0], [300, 200, 100, 100], kind)
    assert not made.adapts
    assert made.weights().tolist() == [0.25] * 4


def test_what_is_cleared_least_gets_the_most_play_and_nothing_is_starved() -> None:
    made = played([1.0, 0.9, 0.5, 0.0], [100, 100, 100, 100])
    shares = decisions(made)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[3] > shares[2] > shares[1] > shares[0]
    assert shares.min() >= FLOOR / 4


def test_shares_are_of_decisions_not_of_episodes() -> None:
    made = played([0.0, 0.0, 0.0, 0.0], [400, 200, 100, 50])
    assert decisions(made) == pytest.approx(np.full(4, 0.25), abs=0.01)
    assert made.weights()[3] == pytest.approx(8 * made.weights()[0], rel=0.05)


def test_a_stage_that_was_never_played_comes_first() -> None:
    made = Curriculum("progress", STAGES)
    for stage in (0, 1, 3):
        made.observe(stage, False, 500, 100)
    assert int(decisions(made).argmax()) == 2


def test_a_stage_whose_success_moves_is_played_more_than_one_that_stands_still() -> None:
    made = played([0.5, 0.5, 0.5, 0.5], [100] * 4)
    made.fast[:] = made.slow[:] = 0.5
    before = decisions(made)[1]
    made.slow[1] = 0.3
    assert decisions(made)[1] > 1.2 * before


def test_its_state_goes_on_where_it_was_saved_also_that_of_older_runs() -> None:
    made = played([1.0, 0.9, 0.5, 0.0], [300, 200, 100, 50])
    other = Curriculum("progress", STAGES)
    other.load_state_dict(made.state_dict())
    assert other.weights().tolist() == made.weights().tolist()
    old = made.state_dict()
    del old["length"]
    older = Curriculum("progress", STAGES)
    older.load_state_dict(old)
    assert older.fast.tolist() == made.fast.tolist()
    assert older.weights().sum() == pytest.approx(1.0)
