"""Where along a way episodes begin, and what is counted of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.starts.moments import bare
from warpzone.starts.reverse_curriculum import ReverseCurriculum, TrailConfig, TrailStarts
from warpzone.starts.way import (
    BEFORE,
    BEHIND,
    CLEARED,
    EVEN,
    FRONTIER,
    IMITATED,
    OPEN,
    PARTS,
    STUCK,
    TOGETHER,
    Way,
)


class Recorder:
    """Environments that only remember what was queued."""

    num_envs = 4

    def __init__(self) -> None:
        self.queued: list[tuple[int, bytes]] = []

    def queue_start(self, index: int, blob: bytes) -> None:
        self.queued.append((index, blob))


def ended(
    stage: int, cleared: bool, began_on_trail: bool, begins_on_trail: bool, progress: int = 0
) -> dict[str, Any]:
    """Info of a step in which the first environment's episode ended."""
    rows = np.array([True, False, False, False])
    final = {
        "flag_get": rows & cleared,
        "stage_index": np.full(4, stage),
        "from_snapshot": np.full(4, int(began_on_trail)),
        "progress": np.full(4, progress),
        "steps": np.ones(4, np.int64),
    }
    return {"_final_info": rows, "final_info": final, "from_snapshot": np.full(4, int(begins_on_trail))}


def backward(seed: int = 0, patience: int = 0) -> tuple[ReverseCurriculum, Recorder]:
    ways = {1: [[bare(bytes([n]))] for n in range(40)]}
    config = TrailConfig(trail_share=1.0, trail_patience=patience)
    made = ReverseCurriculum(ways, ["1-1", "4-4"], config, lambda: np.array([0.0, 1.0]), seed)
    envs = Recorder()
    made.columns.attach([envs])
    return made, envs


def drawn_from(way: Way) -> NDArray[np.float64]:
    """The share of the draws that each start has, but for those at the frontier."""
    random = np.random.default_rng(0)
    drawn = np.bincount([way.choose(random) for _ in range(30000)], minlength=len(way.starts)) / 30000
    at = way.frontier()
    window = slice(max(at - BEFORE, 0), at + BEHIND)
    share = FRONTIER * way.beyond(at)
    drawn[window] -= share / len(drawn[window])
    return drawn / (1 - share)


def test_starts_are_drawn_where_success_is_lost_and_where_it_is_open() -> None:
    way = Way([[bare(bytes([n]))] for n in range(40)])
    assert way.parts == PARTS
    way.cleared[:10] = 0.0
    way.cleared[10] = 0.5
    way.cleared[11:] = 1.0
    share = drawn_from(way).reshape(20, 2).sum(1)
    # Half of the success of part 11 is lost in part 10, which is open as well, and all of part 10's in part 9.
    weights = np.array([0.5, 0.5 + OPEN * 0.25])
    expected = EVEN / 20 + (1 - EVEN) * weights / weights.sum()
    assert share[[9, 10]] == pytest.approx(expected, abs=0.03)
    assert share[:17].min() > 0


def test_within_a_part_starts_are_drawn_where_success_is_lost() -> None:
    way = Way([[bare(bytes([n]))] for n in range(200)])
    way.cleared[10:] = 1.0
    way.cleared[9] = 0.2
    way.each[98:] = 1.0
    share = drawn_from(way)[90:100]
    assert share.argmax() == 7
    assert share[7] / share.sum() == pytest.approx(1 - EVEN + EVEN / 10, abs=0.05)
    assert share.min() > 0


def test_a_place_that_is_worse_than_one_before_it_is_let_be() -> None:
    way = Way([[bare(bytes([n]))] for n in range(40)])
    # Part 8 can be cleared, so that nobody needs to learn how to get out of the trouble in parts 12 to 14.
    way.cleared[8:] = 0.9
    way.cleared[12:15] = 0.0
    share = drawn_from(way).reshape(20, 2).sum(1)
    assert share.argmax() == 7
    assert share[7] > 0.5
    assert share[12:15] == pytest.approx(EVEN / 20, abs=0.01)


def test_most_starts_are_drawn_around_the_first_moments_that_lead_to_the_end() -> None:
    way = Way([[bare(bytes([n, m])) for m in range(10)] for n in range(30)])
    assert way.frontier() == 300
    random = np.random.default_rng(0)

    def most_drawn(count: int) -> list[int]:
        drawn = np.bincount([way.choose(random) for _ in range(12000)], minlength=300) / 12000
        assert np.sort(drawn)[-count:].sum() > FRONTIER * way.beyond(way.frontier())
        return sorted(np.argsort(drawn)[-count:].tolist())

    assert most_drawn(BEFORE) == list(range(300 - BEFORE, 300))
    # From moment 200 on the stage is cleared half of the time; a lucky one before that is not enough.
    for _ in range(60):
        for start in range(200, 300):
            way.ended(start, bool(random.random() < 0.5))
    way.ended(120, True)
    at = way.frontier()
    assert 200 - TOGETHER < at < 200
    assert most_drawn(BEFORE + BEHIND) == list(range(at - BEFORE, at + BEHIND))
    # Trouble behind it does not bring it back.
    way.moments[210:250] = 0.0
    assert way.frontier() == at
    way.moments[:] = way.cleared[:] = 1.0
    assert way.frontier() == 0
    assert most_drawn(BEHIND) == list(range(BEHIND))


def test_a_trail_is_learned_once_the_stage_is_cleared_from_its_start_though_by_another_way() -> None:
    way = Way([[bare(bytes([n]))] for n in range(100)])
    for moment in (90, 91) * 40:
        way.ended(moment, cleared=True)
    assert (way.frontier(), way.first_cleared()) == (84, 90)
    for _ in range(2 * STUCK):
        way.ended(60, cleared=False)
    assert way.to_imitate() == way.starts[90 - IMITATED : 90]
    while way.mastery < CLEARED:
        way.ended_from_start(cleared=True, ground=1.0, length=100)
    assert (way.frontier(), way.first_cleared()) == (0, 0)
    way.ended(60, cleared=False)
    assert way.to_imitate() == []
    # What it clears from its start may be lost again, but it is not stuck there.
    way.mastery = 0.0
    assert way.frontier() == 84
    assert way.to_imitate() == []


def test_where_the_end_is_seldom_reached_from_further_on_that_is_practised_first() -> None:
    way = Way([[bare(bytes([n, m])) for m in range(10)] for n in range(40)])
    random = np.random.default_rng(0)

    def share_of_the_last_three_parts() -> float:
        return float(np.mean([way.choose(random) >= 340 for _ in range(6000)]))

    way.moments[100:] = way.each[10:] = way.cleared[5:] = 0.3
    way.cleared[18:] = way.each[36:] = 1.0
    assert way.frontier() < 110
    assert way.beyond(100) == pytest.approx((12 * 0.3 + 2) / 14)
    seldom = share_of_the_last_three_parts()
    assert seldom > 1 - FRONTIER  # more than would be left if the frontier kept its whole share
    way.cleared[5:] = way.each[10:] = 0.9
    assert share_of_the_last_three_parts() < seldom / 3


def test_what_became_of_a_start_counts_for_its_part_of_the_way() -> None:
    way = Way([[bare(bytes([n]))] for n in range(40)])
    for _ in range(100):
        way.ended(39, True)
        way.ended(0, False)
    assert way.cleared[-1] > 0.99
    assert not way.cleared[:-1].any()


def test_the_clear_rate_along_trails_counts_all_stages() -> None:
    reverse, _ = backward()
    assert reverse.clear_rate() == 0
    reverse.ways[1].cleared[:] = [0.0] * 10 + [1.0] * 10
    assert reverse.clear_rate() == 0.25  # half of 4-4, and 1-1 has no trail


def test_at_a_place_any_moment_is_drawn_and_what_became_of_it_counts_for_the_place() -> None:
    way = Way([[bare(b"a")] * 20, [bare(b"b"), bare(b"c"), bare(b"d")], [bare(b"e")] * 20])
    way.cleared[:] = way.each[:] = 0.0, 0.0, 1.0
    share = drawn_from(way)
    assert share[20:23] == pytest.approx(np.full(3, (1 - EVEN + EVEN / 3) / 3), abs=0.03)
    for start, place in ((0, 0), (19, 0), (20, 1), (22, 1)):
        assert way.starts[start].snapshot == b"aabd"[(0, 19, 20, 22).index(start) :][:1]
        before = way.each.copy()
        way.ended(start, True)
        assert np.flatnonzero(way.each != before).tolist() == [place]
        assert way.moments[start] > 0


def test_short_ways_have_as_many_parts_as_places() -> None:
    way = Way([[bare(b"a")], [bare(b"b")], [bare(b"c")]])
    assert {way.choose(np.random.default_rng(i)) for i in range(400)} == {0, 1, 2}
    way.ended(2, True)
    assert way.cleared.tolist() == [0, 0, pytest.approx(0.05)]


def test_the_share_shrinks_as_the_stage_is_cleared_from_its_true_start() -> None:
    made, envs = backward()
    for _ in range(100):
        made.observe(slice(0, 4), ended(1, False, False, False))
    assert len(envs.queued) == 100
    envs.queued.clear()
    for _ in range(400):
        made.observe(slice(0, 4), ended(1, True, False, False))
    envs.queued.clear()
    for _ in range(400):
        made.observe(slice(0, 4), ended(1, True, False, False))
    assert len(envs.queued) < 20


def test_a_stage_is_left_alone_until_so_many_decisions_in_a_row_have_brought_no_gain() -> None:
    made, envs = backward(patience=10)
    for i in range(16):
        made.observe(slice(0, 4), ended(1, i == 5, False, False))
    assert envs.queued == []
    made.observe(slice(0, 4), ended(1, False, False, False))
    assert len(envs.queued) == 1
    # From then on it has its trail, until it is cleared from the true start as a rule.
    made.observe(slice(0, 4), ended(1, True, False, False))
    made.observe(slice(0, 4), ended(1, False, False, False))
    assert len(envs.queued) > 1


def test_a_stage_is_left_alone_as_long_as_its_episodes_come_further_on_average() -> None:
    made, envs = backward(patience=10)
    for i in range(100):
        made.observe(slice(0, 4), ended(1, False, False, False, progress=100 * i))
    assert envs.queued == []
    # Now and then an episode comes far, but the mean does not grow: the stage is stuck.
    for i in range(400):
        made.observe(slice(0, 4), ended(1, False, False, False, progress=9000 if i % 5 == 0 else 0))
    assert envs.queued != []


def test_a_stage_whose_clear_rate_no_longer_rises_gets_its_trail() -> None:
    made, envs = backward(patience=1000)
    random = np.random.default_rng(0)

    def play(episodes: int, rate: float) -> None:
        for _ in range(episodes):
            made.observe(slice(0, 4), ended(1, bool(random.random() < rate), False, False))

    for rate in np.linspace(0.0, 0.6, 40):
        play(100, float(rate))
    assert envs.queued == []
    play(6000, 0.6)
    assert envs.queued != []


def test_a_stage_that_is_cleared_almost_always_needs_no_trail() -> None:
    made, envs = backward(patience=1000)
    for i in range(6000):
        made.observe(slice(0, 4), ended(1, i % 40 > 0, False, False))
    assert envs.queued == []


def test_a_stage_without_a_trail_always_begins_at_its_start() -> None:
    made = ReverseCurriculum({}, ["1-1"], TrailConfig(), lambda: np.array([1.0]))
    envs = Recorder()
    made.columns.attach([envs])
    made.observe(slice(0, 4), ended(0, False, False, False))
    assert envs.queued == []
    assert made.metrics() == {"trail_share": 0.0, "trail_cleared": {}}


def test_success_is_credited_to_the_start_that_was_really_used() -> None:
    made, envs = backward()
    made.observe(slice(0, 4), ended(1, False, False, False))  # queues a start for the next episode but one
    first = envs.queued[-1][1][0]
    made.observe(slice(0, 4), ended(1, False, False, True))  # the episode that begins now is from it
    made.observe(slice(0, 4), ended(1, True, True, True))
    assert np.flatnonzero(made.ways[1].cleared).tolist() == [first // 2]
    assert made.metrics() == {"trail_share": pytest.approx(1 / 3), "trail_cleared": {"4-4": 0.003}}


def test_its_state_goes_on_where_it_was_saved() -> None:
    made, envs = backward(seed=5)
    for i in range(50):
        made.observe(slice(0, 4), ended(1, i % 3 == 1, i > 0, i > 0))
    other, others = backward(seed=6)
    other.load_state_dict(made.state_dict())
    TrailStarts(other).load_state_dict(TrailStarts(made).state_dict())
    assert others.queued == envs.queued[-1:]
    for i in range(50):
        for one in (made, other):
            one.observe(slice(0, 4), ended(1, i % 2 == 0, True, True))
    assert others.queued[1:] == envs.queued[-50:]
    assert other.state_dict() == made.state_dict()
    assert TrailStarts(other).state_dict() == TrailStarts(made).state_dict()


def test_a_way_that_has_changed_begins_anew() -> None:
    made, _ = backward()
    made.ways[1].ended(39, True)
    longer = ReverseCurriculum(
        {1: [[b"x"]] * 41}, ["1-1", "4-4"], TrailConfig(), lambda: np.array([0.0, 1.0])
    )
    longer.columns.attach([Recorder()])
    longer.load_state_dict(made.state_dict())
    TrailStarts(longer).load_state_dict(TrailStarts(made).state_dict())
    assert not longer.ways[1].cleared.any()


def test_a_run_of_before_patience_was_counted_in_decisions_goes_on_with_its_ways_anew() -> None:
    made, envs = backward()
    old = made.state_dict()
    old["ways"] = {"4-4": [40, 0, 0.5, [1.0] * PARTS]}
    made.load_state_dict(old)
    TrailStarts(made).load_state_dict({**TrailStarts(made).state_dict(), **old})
    assert not made.ways[1].cleared.any()
    assert envs.queued == []


def test_a_run_of_before_every_moment_was_counted_goes_on_with_its_ways_anew() -> None:
    made, _ = backward()
    made.ways[1].ended(39, True)
    old = made.state_dict()
    del old["ways"]["4-4"]["moments"]
    other, _ = backward()
    other.load_state_dict(old)
    assert not other.ways[1].cleared.any()


def test_a_trail_is_searched_once_plain_learning_makes_no_progress() -> None:
    searched: list[int] = []

    def search(stage: int) -> list[list[bytes]]:
        searched.append(stage)
        return [[bare(bytes([i]))] for i in range(40)]

    config = TrailConfig(trails="auto", trail_share=1.0, trail_patience=10)
    made = ReverseCurriculum({}, ["1-1", "4-4"], config, lambda: np.array([0.0, 1.0]), search=search)
    envs = Recorder()
    made.columns.attach([envs])
    assert made.metrics()["trail_cleared"] == {}
    for _ in range(30):
        made.observe(slice(0, 4), ended(1, False, False, False))
    assert searched == [1]
    assert len(envs.queued) > 5
    assert list(made.metrics()["trail_cleared"]) == ["4-4"]
    # A resumed run that has the trail by now resumes its patience, and what was learned along it.
    again = ReverseCurriculum(
        {1: [[bare(bytes([i]))] for i in range(40)]}, made.stages, config, made._weights
    )
    again.load_state_dict(made.state_dict())
    assert again.ways[1].patience == 0
    assert again.state_dict()["ways"]["4-4"] == made.state_dict()["ways"]["4-4"]


def test_a_stage_whose_search_failed_is_not_searched_again() -> None:
    searched: list[int] = []
    config = TrailConfig(trails="auto", trail_share=1.0, trail_patience=10)
    made = ReverseCurriculum(
        {}, ["1-1", "4-4"], config, lambda: np.array([0.0, 1.0]), search=lambda stage: searched.append(stage)
    )
    made.columns.attach([Recorder()])
    for _ in range(60):
        made.observe(slice(0, 4), ended(1, False, False, False))
    assert searched == [1]


@pytest.mark.parametrize("patience", [0, 10])
def test_progress_does_not_bring_a_search_back_that_failed(patience: int) -> None:
    searched: list[int] = []
    config = TrailConfig(trails="auto", trail_share=1.0, trail_patience=patience)
    made = ReverseCurriculum(
        {}, ["4-4"], config, lambda: np.array([1.0]), search=lambda stage: searched.append(stage)
    )
    made.columns.attach([Recorder()])
    for episode in range(200):
        cleared = episode > 50 and episode % 3 == 0
        made.observe(slice(0, 4), ended(0, cleared, False, False, progress=max(0, episode - 50)))
    assert searched == [0]


def test_a_search_that_was_broken_off_begins_again_after_a_resume() -> None:
    is_stopping, searched = True, list[int]()

    def search(stage: int) -> list[list[bytes]]:
        searched.append(stage)
        return [] if is_stopping else [[bare(bytes([i]))] for i in range(40)]

    config = TrailConfig(trails="auto", trail_share=1.0, trail_patience=0)
    made = ReverseCurriculum({}, ["4-4", "7-4"], config, lambda: np.array([0.5, 0.5]), search=search)
    made.columns.attach([Recorder()])
    made.observe(slice(0, 4), ended(0, False, False, False))
    assert searched == [0]  # one at a step: each may take minutes
    again = ReverseCurriculum({}, made.stages, config, made._weights, search=search)
    again.load_state_dict(made.state_dict())
    again.columns.attach([Recorder()])
    is_stopping = False
    for _ in range(2):
        again.observe(slice(0, 4), ended(0, False, False, False))
    assert searched == [0, 0, 1]
    assert list(again.metrics()["trail_cleared"]) == ["4-4", "7-4"]
