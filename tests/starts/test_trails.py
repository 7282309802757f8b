"""Ways through a stage that random play finds, and a run that begins episodes along them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.run.small_runs import measured, saved_state, small_run
from tests.starts.moments import bare
from warpzone.envs.actions import action_buttons
from warpzone.envs.make import make_envs
from warpzone.envs.vector import MarioVectorEnv
from warpzone.errors import ConfigError
from warpzone.run.presets import CPU
from warpzone.starts.exploration import SEARCH_ON, Explorer, cells_of
from warpzone.starts.reverse_curriculum import TrailConfig
from warpzone.starts.trails import (
    IN_THE_AIR,
    Trail,
    _thinned,
    _Visit,
    _visit,
    _with_end_of,
    load_trail,
    load_ways,
    places_along,
    save_trail,
)

VIEW = replace(CPU.view, noop_max=30)


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


def test_the_search_goes_on_for_a_shorter_way(trail: Trail) -> None:
    explorer = Explorer("1-1", seed=3)
    first = None
    while first is None:
        first = explorer.step()
    explorer.close()
    assert trail.decisions < len(first)
    assert explorer.tried < trail.tried <= SEARCH_ON * explorer.tried


def test_a_trail_is_kept_as_text_and_read_back(trail: Trail, folder: Path) -> None:
    assert load_trail(folder, "1-1") == trail
    assert load_trail(folder, "1-2") is None
    assert json.loads((folder / "1-1.json").read_text())["sequence"].count(":") > 10


def test_the_places_along_it_follow_each_other_closely(trail: Trail) -> None:
    along = places_along(trail, VIEW)
    assert len(along) > 40
    starts = [moments[0].snapshot for moments in along]
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


def visited(*places: int) -> list[_Visit]:
    """Visits to places, a decision each."""
    seen: list[_Visit] = []
    for i, place in enumerate(places):
        _visit(seen, _Visit((place,), i, stands=True, moments=(bare(bytes([i])),)))
    return seen


def test_every_decision_at_a_place_is_a_moment_of_it() -> None:
    """Where 'down' must be pressed to the pixel, the start may be one step before it as well as ten."""
    assert [tuple(moment.snapshot for moment in visit.moments) for visit in visited(1, 1, 2, 1, 1, 1, 2)] == [
        (b"\x00", b"\x01"),
        (b"\x02",),
        (b"\x03", b"\x04", b"\x05"),
        (b"\x06",),
    ]


def test_each_moment_leads_to_the_next(trail: Trail) -> None:
    """Where decisions are left out, enemies and lifts are elsewhere, and what lies behind can't be reached."""
    moments = [moment for place in places_along(trail, VIEW) for moment in place]
    assert len(moments) == trail.decisions
    numbers = {buttons: i for i, buttons in enumerate(action_buttons("complex"))}
    view = VIEW.fixed(action_type="complex", stall_limit=0, step_limit=0)
    envs = make_envs(view, 2, ["1-1"], threads=1, frame_stack=1, autoreset_mode="disabled")
    envs.reset(seed=0)
    for before, after in pairwise(moments):
        envs.restore_many({0: before.snapshot, 1: after.snapshot})
        expected = envs.ram[1]
        envs.step(np.full(2, numbers[before.buttons]))
        assert np.array_equal(envs.ram[0], expected)
    envs.close()


def test_long_jumps_have_starts_and_short_ones_none() -> None:
    def along(in_the_air: int) -> list[int]:
        stands = [i in (0, in_the_air + 1) for i in range(in_the_air + 2)]
        jump = [_Visit((i,), i, on, (bare(bytes([i])),)) for i, on in enumerate(stands)]
        thinned = _thinned(jump)
        # What lies between two places are moments of the first.
        assert [m.snapshot[0] for visit in thinned for m in visit.moments] == list(range(in_the_air + 2))
        assert all(visit.moments[0].snapshot == bytes([visit.decision]) for visit in thinned)
        return [visit.decision for visit in thinned]

    assert along(IN_THE_AIR - 1) == [0, IN_THE_AIR]
    assert along(10) == [0, 4, 8, 11]


def test_the_end_of_another_trail_is_practised_at_the_places_of_the_first() -> None:
    def along(*places: tuple[int, int], name: bytes = b"a") -> list[_Visit]:
        """Places by their room and x."""
        return [
            _Visit((0, room, x, 5), i, stands=True, moments=(bare(name + bytes([i])),))
            for i, (room, x) in enumerate(places)
        ]

    ours = along((1, 0), (1, 3), (2, 7), (1, 4), (1, 6), (1, 8))
    theirs = along((3, 0), (1, 1), (2, 2), (1, 3), (1, 7), (1, 9), (1, 9), name=b"b")
    merged = _with_end_of(ours, theirs)
    assert [visit.place for visit in merged] == [visit.place for visit in ours]
    assert [[moment.snapshot for moment in visit.moments] for visit in merged] == [
        [b"a\x00"], [b"a\x01"], [b"a\x02"],  # the rooms before, and the first time in this one, are ours alone
        [b"a\x03", b"b\x03"], [b"a\x04", b"b\x04"], [b"a\x05", b"b\x05", b"b\x06"],
    ]  # fmt: skip
    elsewhere = along((1, 0), (3, 9), name=b"c")
    assert _with_end_of(ours, elsewhere) == ours


def test_trails_of_further_seeds_are_found_beside_the_first(trail: Trail, folder: Path) -> None:
    def moments() -> list[list[bytes]]:
        return [[m.snapshot for m in p] for p in load_ways(str(folder), ["1-1"], VIEW, trail.rom_sha256)[0]]

    alone = moments()
    save_trail(trail, folder / "seed-0")
    assert moments() == alone  # it is the first itself
    # After a decision without buttons everything else is a decision later too.
    later = replace(trail, sequence=f"NOOP:4,{trail.sequence}", decisions=trail.decisions + 1)
    assert len(places_along(later, VIEW)) > 40
    save_trail(later, folder / "seed-1")
    both = moments()
    assert [merged[: len(first)] for merged, first in zip(both, alone, strict=True)] == alone
    assert 0 < sum(map(len, both)) - sum(map(len, alone)) <= later.decisions
    assert len(both[-1]) > len(alone[-1])
    save_trail(replace(later, frame_skip=2), folder / "seed-1")
    assert moments() == alone


def test_random_play_of_one_seed_repeats_itself_and_of_another_does_not() -> None:
    def played(seed: int) -> tuple[list[int], int, int]:
        explorer = Explorer("4-4", seed=seed)
        for _ in range(300):
            assert explorer.step() is None
        explorer.close()
        return sorted(explorer._cells), explorer.furthest, explorer.tried

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
        with pytest.raises(ConfigError, match="not decisions of the complex set"):
            places_along(replace(trail, sequence=odd), VIEW)
    with pytest.raises(ConfigError, match="is of another ROM"):
        load_ways(str(folder), ["1-1"], VIEW, "0" * 64)
    with pytest.raises(ConfigError, match="has no trail of 1-2"):
        load_ways(str(folder), ["1-2"], VIEW, trail.rom_sha256)
    for change in ({"sequence": 5}, {"stage": "1-2"}, {"stage": 5}):
        (folder / "1-1.json").write_text(json.dumps({**asdict(trail), **change}))
        with pytest.raises(ConfigError, match="no buttons for 1-1"):
            load_trail(folder, "1-1")
    (folder / "1-1.json").write_text('{"stage": "1-1"')
    with pytest.raises(ConfigError, match="is not a trail"):
        load_trail(folder, "1-1")
    with pytest.raises(ConfigError, match="trail_share must be from 0 to 1"):
        TrailConfig(trail_share=1.5)
    with pytest.raises(ConfigError, match="trail_patience must be at least 0"):
        TrailConfig(trail_patience=-1)
    with pytest.raises(ConfigError, match="native backend"):
        small_run(tmp_path, "--backend", "nes-py", "--trails", str(folder))


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
