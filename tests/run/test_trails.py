"""Ways through a stage that random play finds, and episodes that begin along them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone.envs.actions import action_names
from warpzone.envs.backends.telemetry import blocks
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError
from warpzone.run.backward import (
    BEFORE,
    BEHIND,
    EVEN,
    FRONTIER,
    OPEN,
    PARTS,
    TOGETHER,
    Backward,
    TrailConfig,
    Way,
)
from warpzone.run.build import rom_digest
from warpzone.run.config import CPU
from warpzone.run.evaluate import make_envs
from warpzone.run.explore import Explorer, cells_of, find_trail
from warpzone.run.trails import (
    IN_THE_AIR,
    SPACING,
    Trail,
    _thinned,
    _Visit,
    _visit,
    load_trail,
    load_ways,
    places_along,
    save_trail,
)

from .small_runs import measured, saved_state, small_run

VIEW = replace(CPU.view, noop_max=30)
FOUND = ((1, b"."), (2, b"."), (3, b"#"), (2, b"#"), (1, b"#"), (4, b"#"))


@pytest.fixture(scope="module")
def trail() -> Trail:
    found = find_trail("1-1", rom_sha256=rom_digest(CPU), seed=3, minutes=5)
    assert found is not None
    return found


@pytest.fixture
def folder(trail: Trail, tmp_path: Path) -> Path:
    return save_trail(trail, tmp_path / "trails").parent


def test_the_way_that_was_found_leads_to_the_flag_on_an_environment_of_its_own(trail: Trail) -> None:
    envs = MarioVectorEnv(1, "1-1", action_type="complex", autoreset_mode="disabled")
    envs.reset(seed=11)
    actions = trail.actions()
    assert len(actions) == trail.decisions
    for i, action in enumerate(actions):
        _, _, terminated, _, info = envs.step(np.array([action]))
        assert terminated[0] == (i + 1 == len(actions))
    assert info["flag_get"][0]
    assert info["wrong_turns"][0] == 0


def test_a_trail_is_kept_as_text_and_read_back(trail: Trail, folder: Path) -> None:
    assert load_trail(folder, "1-1") == trail
    assert load_trail(folder, "1-2") is None
    assert json.loads((folder / "1-1.json").read_text())["sequence"].count(":") > 10


def test_the_places_along_it_follow_each_other_closely(trail: Trail) -> None:
    along = places_along(trail, VIEW)
    assert len(along) > 40
    starts = [moments[0] for moments in along]
    envs = make_envs(VIEW, 1, ["1-1"], threads=1, frame_stack=1, autoreset_mode="same_step")
    envs.reset(seed=0)
    places: list[tuple[int, int, int]] = []
    clocks: list[int] = []
    standing = 0
    for start in starts:
        _, info = envs.reset(options={"snapshot": start})
        assert info["from_snapshot"][0]
        standing += int(envs.ram[0, 0x1D] == 0)
        places.append((int(envs.ram[0, 0x074F]), int(info["x_pos"][0]), int(info["y_pos"][0])))
        clocks.append(-int(info["time"][0]))
    assert clocks == sorted(clocks)
    assert places[0][1] <= 48
    assert max(x for _, x, _ in places) > 2900
    assert len(starts) / 4 < standing < len(starts)
    # Running, a decision covers 10 pixels or 12; no start is further away than a few of them.
    steps = [abs(after[1] - before[1]) for before, after in pairwise(places) if after[0] == before[0]]
    assert max(steps) <= 12 * (IN_THE_AIR + 4)


def kept(*visits: tuple[int, int]) -> list[tuple[int, int]]:
    """What is left of visits to (place, ground covered by then)."""
    return [(visit.place[0], visit.ground) for visit in visited(*visits)]


def visited(*visits: tuple[int, int]) -> list[_Visit]:
    seen: list[_Visit] = []
    for decision, (place, ground) in enumerate(visits):
        _visit(seen, _Visit((place,), ground, decision, stands=True, moments=(bytes([decision]),)))
    return seen


def test_loops_without_new_ground_are_left_out_and_others_are_part_of_the_way() -> None:
    """Without the way back there is a hole: from before it the agent would have to find out all of it at once."""
    # To and fro without anything new: only the straight way is left.
    assert kept((1, 10), (2, 20), (1, 20), (2, 20), (3, 30)) == [(1, 10), (2, 20), (3, 30)]
    # Ahead, back to where another lane begins, and on from there.
    assert kept((1, 10), (2, 20), (3, 30), (2, 30), (1, 30), (7, 30)) == [
        *((1, 10), (2, 20), (3, 30)),
        *((2, 30), (1, 30), (7, 30)),
    ]
    # A hidden block was found in between: that is no new ground, and the way on needs it.
    there = [_Visit((place,), 20, i, True, blocks=made_of) for i, (place, made_of) in enumerate(FOUND)]
    seen: list[_Visit] = []
    for visit in there:
        _visit(seen, visit)
    assert seen == there
    # Several decisions at a place are one visit.
    assert kept((1, 10), (1, 12), (1, 14), (2, 20)) == [(1, 14), (2, 20)]


def test_a_block_that_is_hit_changes_what_the_stage_is_made_of_and_waiting_does_not() -> None:
    envs = MarioVectorEnv(1, "1-1", action_type="complex", autoreset_mode="disabled")
    _, info = envs.reset(seed=0)

    def press(name: str) -> bytes:
        nonlocal info
        _, _, _, _, info = envs.step(np.array([action_names("complex").index(name)]))
        return blocks(envs.ram[0])

    while info["x_pos"][0] < 250:
        press("RIGHT")
    for _ in range(4):
        before = press("LEFT")
    assert press("NOOP") == before
    assert info["coins"][0] == 0
    jumped = [press("A") for _ in range(5)]
    assert info["coins"][0] == 1
    assert sum(now != then for now, then in zip(jumped[-1], before, strict=True)) == 1


def test_every_decision_at_a_place_is_a_moment_of_it() -> None:
    """Where 'down' must be pressed to the pixel, the start may be one step before it as well as ten."""
    # Also those without new ground, and only of the last time there.
    assert [
        visit.moments for visit in visited((1, 10), (1, 10), (2, 10), (1, 10), (1, 10), (1, 14), (2, 20))
    ] == [
        (b"\x03", b"\x04", b"\x05"),
        (b"\x06",),
    ]


def test_no_decision_of_the_way_is_left_out_but_those_of_loops(trail: Trail) -> None:
    moments = [moment for place in places_along(trail, VIEW) for moment in place]
    assert trail.decisions / 3 < len(moments) <= trail.decisions
    envs = make_envs(VIEW, 1, ["1-1"], threads=1, frame_stack=1, autoreset_mode="same_step")
    envs.reset(seed=0)
    at: list[tuple[int, int]] = []
    for moment in moments:
        _, info = envs.reset(options={"snapshot": moment})
        at.append((int(envs.ram[0, 0x074F]), int(info["x_pos"][0])))
    assert (
        max(abs(after[1] - before[1]) for before, after in pairwise(at) if after[0] == before[0])
        <= SPACING + 12
    )


def test_long_jumps_have_starts_and_short_ones_none() -> None:
    def along(in_the_air: int) -> list[int]:
        stands = [i in (0, in_the_air + 1) for i in range(in_the_air + 2)]
        jump = [_Visit((i,), 0, i, on, (bytes([i]),)) for i, on in enumerate(stands)]
        thinned = _thinned(jump)
        # What lies between two places are moments of the first.
        assert b"".join(b"".join(visit.moments) for visit in thinned) == bytes(range(in_the_air + 2))
        assert all(visit.moments[0] == bytes([visit.decision]) for visit in thinned)
        return [visit.decision for visit in thinned]

    assert along(IN_THE_AIR - 1) == [0, IN_THE_AIR]
    assert along(10) == [0, 4, 8, 11]


def test_random_play_of_one_seed_repeats_itself_and_of_another_does_not() -> None:
    def played(seed: int) -> tuple[list[int], int, int]:
        explorer = Explorer("4-4", seed=seed)
        for _ in range(300):
            assert explorer.step() is None
        explored = explorer.explored()
        explorer.close()
        return sorted(explorer._cells), explored.furthest, explored.tried

    first, again, other = played(1), played(1), played(2)
    assert first == again
    assert first[0] != other[0]
    assert len(first[0]) > 100
    assert first[2] == 300 * 32


def test_cells_tell_rooms_tiles_heights_speeds_and_parts_of_a_maze_apart() -> None:
    ram = np.zeros((9, 2048), np.uint8)
    ram[1, 0x0086] = 16  # a tile further
    ram[2, 0x006D] = 255  # a page before the first
    ram[3, 0x03B8] = 16  # a tile lower
    ram[4, 0x0057] = 40  # running
    ram[5, 0x06D9] = 1  # one part right
    ram[6, 0x074E] = 1  # another kind of area
    ram[7, 0x074F] = 2  # another area
    ram[8, [0x0086, 0x03B8, 0x0750]] = 15, 15, 2  # the same tile, where another pipe leads
    cells = cells_of(ram).tolist()
    assert len(set(cells[:8])) == 8
    assert cells[8] == cells[0]


def test_a_trail_that_does_not_fit_is_refused(trail: Trail, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds its buttons for 4 frames, not 2"):
        places_along(trail, replace(VIEW, frame_skip=2))
    with pytest.raises(ConfigError, match="does not lead to its end"):
        places_along(replace(trail, sequence="RIGHT:40"), VIEW)
    for odd in ("SELECT:8", "RIGHT:3"):
        with pytest.raises(ConfigError, match="no decisions of the complex set"):
            places_along(replace(trail, sequence=odd), VIEW)
    with pytest.raises(ConfigError, match="is of another ROM"):
        load_ways(str(folder), ["1-1"], VIEW, "0" * 64)
    with pytest.raises(ConfigError, match="has no trail of 1-2"):
        load_ways(str(folder), ["1-2"], VIEW, trail.rom_sha256)
    (folder / "1-1.json").write_text('{"stage": "1-1"')
    with pytest.raises(ConfigError, match="is no trail"):
        load_trail(folder, "1-1")
    with pytest.raises(ConfigError, match="share from 0 to 1"):
        TrailConfig(trail_share=1.5)
    with pytest.raises(ConfigError, match="patience can't be negative"):
        TrailConfig(trail_patience=-1)
    with pytest.raises(ConfigError, match="native backend"):
        small_run(tmp_path, "--backend", "nes-py", "--trails", str(folder))


# ---- where episodes begin ----


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


def backward(seed: int = 0, patience: int = 0) -> tuple[Backward, Recorder]:
    ways = {1: [[bytes([n])] for n in range(40)]}
    config = TrailConfig(trail_share=1.0, trail_patience=patience)
    made = Backward(ways, ["1-1", "4-4"], config, lambda: np.array([0.0, 1.0]), seed)
    envs = Recorder()
    made.attach([envs])
    return made, envs


def drawn_from(way: Way) -> NDArray[np.float64]:
    """The share of the draws that each start has, but for those at the frontier."""
    random = np.random.default_rng(0)
    drawn = np.bincount([way.choose(random) for _ in range(30000)], minlength=len(way.starts)) / 30000
    at = way.frontier()
    window = slice(max(at - BEFORE, 0), at + BEHIND)
    drawn[window] -= FRONTIER / len(drawn[window])
    return drawn / (1 - FRONTIER)


def test_starts_are_drawn_where_success_is_lost_and_where_it_is_open() -> None:
    way = Way([[bytes([n])] for n in range(40)])
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
    way = Way([[bytes([n])] for n in range(200)])
    way.cleared[10:] = 1.0
    way.cleared[9] = 0.2
    way.each[98:] = 1.0
    share = drawn_from(way)[90:100]
    assert share.argmax() == 7
    assert share[7] / share.sum() == pytest.approx(1 - EVEN + EVEN / 10, abs=0.05)
    assert share.min() > 0


def test_a_place_that_is_worse_than_one_before_it_is_let_be() -> None:
    way = Way([[bytes([n])] for n in range(40)])
    # Part 8 can be cleared, so that nobody needs to learn how to get out of the trouble in parts 12 to 14.
    way.cleared[8:] = 0.9
    way.cleared[12:15] = 0.0
    share = drawn_from(way).reshape(20, 2).sum(1)
    assert share.argmax() == 7
    assert share[7] > 0.5
    assert share[12:15] == pytest.approx(EVEN / 20, abs=0.01)


def test_most_starts_are_drawn_around_the_first_moments_that_lead_to_the_end() -> None:
    way = Way([[bytes([n, m]) for m in range(10)] for n in range(30)])
    assert way.frontier() == 300
    random = np.random.default_rng(0)

    def most_drawn(count: int) -> list[int]:
        drawn = np.bincount([way.choose(random) for _ in range(12000)], minlength=300) / 12000
        assert np.sort(drawn)[-count:].sum() > FRONTIER
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
    way.moments[:] = 1.0
    assert way.frontier() == 0
    assert most_drawn(BEHIND) == list(range(BEHIND))


def test_what_became_of_a_start_counts_for_its_part_of_the_way() -> None:
    way = Way([[bytes([n])] for n in range(40)])
    for _ in range(100):
        way.ended(39, True)
        way.ended(0, False)
    assert way.cleared[-1] > 0.99
    assert not way.cleared[:-1].any()


def test_at_a_place_any_moment_is_drawn_and_what_became_of_it_counts_for_the_place() -> None:
    way = Way([[b"a"] * 20, [b"b", b"c", b"d"], [b"e"] * 20])
    way.cleared[:] = way.each[:] = 0.0, 0.0, 1.0
    share = drawn_from(way)
    assert share[20:23] == pytest.approx(np.full(3, (1 - EVEN + EVEN / 3) / 3), abs=0.03)
    for start, place in ((0, 0), (19, 0), (20, 1), (22, 1)):
        assert way.starts[start] == b"aabd"[(0, 19, 20, 22).index(start) :][:1]
        before = way.each.copy()
        way.ended(start, True)
        assert np.flatnonzero(way.each != before).tolist() == [place]
        assert way.moments[start] > 0


def test_short_ways_have_as_many_parts_as_places() -> None:
    way = Way([[b"a"], [b"b"], [b"c"]])
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


def test_a_stage_is_left_alone_until_so_many_decisions_in_a_row_have_not_cleared_it() -> None:
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


def test_a_stage_without_a_trail_always_begins_at_its_start() -> None:
    made = Backward({}, ["1-1"], TrailConfig(), lambda: np.array([1.0]))
    envs = Recorder()
    made.attach([envs])
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
    other.load_play(made.state_dict())
    assert others.queued == envs.queued[-1:]
    for i in range(50):
        for one in (made, other):
            one.observe(slice(0, 4), ended(1, i % 2 == 0, True, True))
    assert others.queued[1:] == envs.queued[-50:]
    assert other.state_dict() == made.state_dict()


def test_a_way_that_has_changed_begins_anew() -> None:
    made, _ = backward()
    made.ways[1].ended(39, True)
    longer = Backward({1: [[b"x"]] * 41}, ["1-1", "4-4"], TrailConfig(), lambda: np.array([0.0, 1.0]))
    longer.attach([Recorder()])
    longer.load_state_dict(made.state_dict())
    longer.load_play(made.state_dict())
    assert not longer.ways[1].cleared.any()


def test_a_run_of_before_patience_was_counted_in_decisions_goes_on_with_its_ways_anew() -> None:
    made, envs = backward()
    old = made.state_dict()
    old["ways"] = {"4-4": [40, 0, 0.5, [1.0] * PARTS]}
    made.load_state_dict(old)
    made.load_play(old)
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


def test_a_training_run_begins_episodes_on_the_trail_and_reports_only_true_starts(
    folder: Path, tmp_path: Path
) -> None:
    flags = (
        "--action-type",
        "complex",
        "--trails",
        str(folder),
        "--trail-share",
        "0.9",
        "--trail-patience",
        "0",
        "--step-limit",
        "20",
    )
    small_run(tmp_path, "--run-name", "a", "--total-updates", "8", *flags)
    episodes = [json.loads(line) for line in (tmp_path / "a" / "episodes.jsonl").read_text().splitlines()]
    starts = [one["start"] for one in episodes]
    assert starts.count("snapshot") > 5
    assert starts.count("stage") > 0
    assert max(one["x_max"] for one in episodes if one["start"] == "snapshot") > 1000
    assert sum(record["trail_share"] > 0 for record in measured(tmp_path / "a")) > 2
    assert set(saved_state(tmp_path / "a")["backward"]["ways"]) == {"1-1"}
