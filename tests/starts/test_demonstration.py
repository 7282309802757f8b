"""The actions that a trail shows: to whom, and until when."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from warpzone.envs.actions import action_names
from warpzone.envs.make import make_envs
from warpzone.run.build import rom_digest
from warpzone.run.presets import CPU
from warpzone.starts.demonstration import Demonstration
from warpzone.starts.exploration import find_trail
from warpzone.starts.trails import Moment, places_along

ONE = slice(0, 1)
COMPLEX = action_names("complex")


@pytest.fixture(scope="module")
def moments() -> list[Moment]:
    trail = find_trail("1-1", rom_sha256=rom_digest(CPU), seed=3, minutes=5)
    assert trail is not None
    return [moment for place in places_along(trail, CPU.view) for moment in place]


def at(x: int, y: int = 0, ended: bool = False) -> dict[str, Any]:
    return {"x_pos": np.array([x]), "y_pos": np.array([y]), "_final_info": np.array([ended])}


def straight(*decisions: int) -> list[Moment]:
    """A trail that runs to the right, one pixel a decision."""
    return [Moment(b"", number, COMPLEX.index("RIGHT"), x_pos=number) for number in decisions]


def test_who_follows_a_real_trail_is_shown_it_up_to_the_frontier(moments: list[Moment]) -> None:
    joined = [now.decision + 1 == then.decision for now, then in pairwise(moments)]
    length = 20
    start = next(i for i in range(len(joined)) if all(joined[i : i + length]))
    view = replace(CPU.view, action_type="complex", noop_max=0)
    envs = make_envs(view, 1, ["1-1"], threads=1, frame_stack=1, autoreset_mode="same_step")
    envs.reset(seed=0)
    _, info = envs.reset(options={"snapshot": moments[start].snapshot})
    demonstration = Demonstration("complex")
    demonstration.set_trails({0: moments})
    demonstration.move(ONE, info)
    demonstration.begin(0, 0, start, frontier=start + length - 5)
    for i in range(length):
        shown = demonstration.shown(ONE).tolist()
        assert shown == [moments[start + i].action if i < length - 5 else -1]
        *_, info = envs.step(np.array([moments[start + i].action]))
        demonstration.move(ONE, info)
    envs.close()


def test_who_leaves_the_trail_is_shown_nothing_more() -> None:
    demonstration = Demonstration("complex")
    demonstration.set_trails({0: straight(*range(10))})
    demonstration.move(ONE, at(0))
    demonstration.begin(0, 0, 0, frontier=10)
    demonstration.move(ONE, at(1))
    assert demonstration.shown(ONE).tolist() == [COMPLEX.index("RIGHT")]
    demonstration.move(ONE, at(2, y=1))
    assert demonstration.shown(ONE).tolist() == [-1]
    demonstration.move(ONE, at(3))
    assert demonstration.shown(ONE).tolist() == [-1]


def test_an_episode_that_ends_leaves_it() -> None:
    demonstration = Demonstration("complex")
    demonstration.set_trails({0: straight(*range(10))})
    demonstration.move(ONE, at(0))
    demonstration.begin(0, 0, 0, frontier=10)
    demonstration.move(ONE, at(1, ended=True))
    assert demonstration.shown(ONE).tolist() == [-1]


def test_what_leads_into_a_loop_that_was_left_out_is_not_shown_and_the_last_decision_is() -> None:
    demonstration = Demonstration("complex")
    demonstration.set_trails({1: straight(0, 1), 0: straight(0, 1, 5, 6)})
    demonstration.move(ONE, at(0))
    right = COMPLEX.index("RIGHT")
    for start, expected in enumerate([right, -1, right, right]):
        demonstration.begin(0, 0, start, frontier=4)
        assert demonstration.shown(ONE).tolist() == [expected]
    demonstration.begin(0, 0, 1, frontier=4)
    demonstration.move(ONE, at(5))
    assert demonstration.shown(ONE).tolist() == [-1]


def test_actions_are_those_of_the_run_and_others_are_not_shown() -> None:
    demonstration = Demonstration("right")
    moments = [Moment(b"", 0, COMPLEX.index("RIGHT+B"), 0), Moment(b"", 1, COMPLEX.index("DOWN"), 1)]
    demonstration.set_trails({0: moments})
    demonstration.move(ONE, at(0))
    demonstration.begin(0, 0, 0, frontier=2)
    assert demonstration.shown(ONE).tolist() == [action_names("right").index("RIGHT+B")]
    demonstration.begin(0, 0, 1, frontier=2)
    assert demonstration.shown(ONE).tolist() == [-1]


def test_it_is_saved_and_a_new_trail_begins_with_nobody_on_it() -> None:
    demonstration, other = Demonstration("complex"), Demonstration("complex")
    for one in (demonstration, other):
        one.set_trails({0: straight(*range(10))})
        one.move(ONE, at(0))
    demonstration.begin(0, 0, 3, frontier=10)
    other.load_state_dict(demonstration.state_dict())
    other.move(ONE, at(4))
    assert other.shown(ONE).tolist() == [COMPLEX.index("RIGHT")]
    other.set_trails({0: straight(*range(9))})
    assert other.shown(ONE).tolist() == [-1]
