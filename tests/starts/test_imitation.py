"""Imitating a trail: what is demonstrated, where, and that a policy learns it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.run.small_runs import differences, lasting_state, measured, small_run
from tests.starts.moments import bare
from warpzone.envs.actions import action_buttons
from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.learn.native import NativeLearner, NativePolicy
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy
from warpzone.starts.imitation import MOMENTS, TrailDemonstration, stacked
from warpzone.starts.reverse_curriculum import ReverseCurriculum, TrailConfig
from warpzone.starts.trails import Moment, Trail, places_along
from warpzone.starts.way import IMITATED, STUCK, Way

VIEW = ViewConfig(action_type="complex", noop_max=0)
LEFT, RIGHT, DOWN = 0b01000000, 0b10000000, 0b00100000


def demonstrated(
    moments: list[Moment],
    cleared_from: int,
    action_type: str = "complex",
    steps: int = 3,
    shown: int = 0,
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    curriculum = ReverseCurriculum(
        {0: [[moment] for moment in moments]}, ["1-1"], TrailConfig(trail_patience=0), lambda: np.ones(1)
    )
    curriculum.ways[0].moments[cleared_from:] = 1.0
    curriculum.ways[0].shown = shown
    view = ViewConfig(action_type=action_type)
    return list(TrailDemonstration(curriculum, view, steps, seed=0)(update=5))


def test_a_moment_holds_what_the_agent_sees_there_and_what_the_trail_does(trail: Trail) -> None:
    moments = [moment for place in places_along(trail, VIEW) for moment in place]
    envs = make_envs(VIEW, 1, ["1-1"], threads=1, frame_stack=1, autoreset_mode="same_step")
    envs.reset(seed=0)
    numbers = {buttons: i for i, buttons in enumerate(action_buttons("complex"))}
    for moment, after in list(pairwise(moments))[::7]:
        seen, _ = envs.reset(options={"snapshot": moment.snapshot})
        assert np.array_equal(seen[0], moment.frames[-1])
        observation, *_ = envs.step(np.array([numbers[moment.buttons]]))
        assert np.array_equal(observation[0], after.frames[-1])
    assert {len(moment.frames) for moment in moments[VIEW.frame_stack :]} == {VIEW.frame_stack}
    envs.close()


def test_stacks_are_those_of_an_episode_that_began_some_decisions_ago() -> None:
    frames = [np.full((1, 1, 1), n, np.uint8) for n in range(4)]
    for age, seen in enumerate(([3, 3, 3, 3], [2, 2, 2, 3], [1, 1, 2, 3], [0, 1, 2, 3])):
        assert stacked(frames, age, 4).ravel().tolist() == seen
    assert stacked(frames[-1:], 0, 1).shape == (1, 1, 1)


def test_what_lies_before_the_frontier_is_demonstrated_and_nothing_else() -> None:
    moments = [bare(bytes([n]), LEFT if n % 2 else RIGHT) for n in range(100)]
    buttons = action_buttons("complex")
    batches = demonstrated(moments, cleared_from=60)
    assert len(batches) == 3
    seen = [
        (int(o[0, 0, 0]), buttons[a]) for obs, actions in batches for o, a in zip(obs, actions, strict=True)
    ]
    assert len(seen) == 3 * MOMENTS
    places = {place for place, _ in seen}
    assert places == set(range(60 - IMITATED, 60))
    assert all(done == (LEFT if place % 2 else RIGHT) for place, done in seen)
    # The same update sees the same, and another one something else.
    again = demonstrated(moments, cleared_from=60)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(batches, again, strict=True))
    assert demonstrated(moments, cleared_from=0) == []


def test_the_step_that_nothing_is_cleared_before_is_demonstrated_too() -> None:
    """The pipe that must be entered exactly here: those before it are within the frontier by the mean of eight."""
    moments = [bare(bytes([n]), DOWN if n == 59 else RIGHT) for n in range(100)]
    batches = demonstrated(moments, cleared_from=60)
    places = {int(o[0, 0, 0]) for obs, _ in batches for o in obs}
    assert places == set(range(60 - IMITATED, 60))
    # None of a trail is cleared yet: its end is shown.
    batches = demonstrated(moments, cleared_from=100)
    assert {int(o[0, 0, 0]) for obs, _ in batches for o in obs} == set(range(100 - IMITATED, 100))


def test_a_trail_is_imitated_only_where_it_is_stuck() -> None:
    moments = [bare(bytes([n]), RIGHT) for n in range(100)]
    assert demonstrated(moments, cleared_from=60, shown=100) == []
    assert len(demonstrated(moments, cleared_from=60, shown=99)) == 3


def test_a_way_waits_until_an_earlier_moment_is_cleared() -> None:
    way = Way([[bare(bytes([n]))] for n in range(100)])
    for _ in range(5):
        way.ended(60, cleared=False)
    assert (way.earliest, way.waited) == (100, 5)
    for moment in (60, 61) * 20:
        way.ended(moment, cleared=True)
    assert way.earliest == 60
    assert 0 < way.waited < 40
    # One that is cleared later than these is nothing new.
    waited = way.waited
    for _ in range(20):
        way.ended(70, cleared=True)
    assert (way.earliest, way.waited) == (60, waited + 20)
    other = Way([[bare(bytes([n]))] for n in range(100)])
    other.load_state_dict(way.state_dict())
    assert other.state_dict() == way.state_dict()
    for _ in range(20):
        way.ended(59, cleared=True)
    assert way.earliest == 59
    assert way.waited < 20


def test_a_way_that_waited_long_is_shown_what_comes_before_until_that_is_cleared() -> None:
    way = Way([[bare(bytes([n]))] for n in range(100)])
    for moment in (60, 61) * 20:
        way.ended(moment, cleared=True)
    for _ in range(STUCK - way.waited - 1):
        way.ended(60, cleared=True)
    assert way.to_imitate() == []
    way.ended(60, cleared=True)
    assert way.to_imitate() == way.starts[60 - IMITATED : 60]
    for moment in range(59, 60 - IMITATED, -1):
        for _ in range(20):
            way.ended(moment, cleared=True)
        assert way.to_imitate() == way.starts[moment - IMITATED : moment]
    for _ in range(20):
        way.ended(60 - IMITATED, cleared=True)
    assert way.to_imitate() == []


def test_actions_that_the_agent_lacks_are_not_demonstrated() -> None:
    moments = [bare(bytes([n]), DOWN if n % 2 else RIGHT) for n in range(100)]
    (obs, actions), *_ = demonstrated(moments, cleared_from=60, action_type="simple")
    assert all(n % 2 == 0 for n in obs[:, 0, 0, 0].tolist())
    assert {action_buttons("simple")[a] for a in actions} == {RIGHT}
    assert demonstrated(moments[1::2], cleared_from=30, action_type="simple") == []


@pytest.mark.parametrize("native", [False, True])
def test_a_policy_learns_what_is_demonstrated(native: bool) -> None:
    torch.manual_seed(0)
    model, shape = ModelConfig(encoder="tiny", hidden=32), (4, 84, 84)
    policy = (NativePolicy if native else Policy)(model, shape, 7)
    learner = (NativeLearner if native else Learner)(policy, LearnConfig(learning_rate=1e-3))
    learner.step.set_rates(1e-3, 0.0, 0.0)
    generator = torch.Generator().manual_seed(1)
    obs = torch.randint(0, 256, (16, *shape), dtype=torch.uint8, generator=generator)
    actions = torch.randint(0, 7, (16,), generator=generator)
    assert learner.step.imitate([]) == {}
    losses = [learner.step.imitate([(obs, actions)] * 20)["loss_imitation"] for _ in range(6)]
    assert losses[0] > 0.5
    assert losses[-1] < 0.1 * losses[0]
    with torch.no_grad():
        logits, _, _ = policy.act(obs)
    assert (logits.argmax(-1) == actions).all()


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trail counts as stuck."""
    monkeypatch.setattr("warpzone.starts.way.STUCK", 0)


@pytest.mark.usefixtures("stuck")
def test_a_run_imitates_its_trail(folder: Path, tmp_path: Path) -> None:
    flags = "--total-updates", "6", "--trail-patience", "0", "--step-limit", "4"
    small_run(tmp_path, "--run-name", "a", "--trails", str(folder), "--trail-imitation", "2", *flags)
    losses = [one["loss_imitation"] for one in measured(tmp_path / "a")]
    assert len(losses) == 6
    assert all(math.isfinite(loss) and loss > 0 for loss in losses)
    small_run(tmp_path, "--run-name", "b", "--trails", str(folder), *flags)
    assert {one["loss_imitation"] for one in measured(tmp_path / "b")} == {None}


@pytest.mark.usefixtures("stuck")
def test_a_run_that_imitates_resumes_to_the_same_bits(folder: Path, tmp_path: Path) -> None:
    flags = (
        "--trails",
        str(folder),
        "--trail-imitation",
        "2",
        "--trail-patience",
        "0",
        "--anneal-updates",
        "6",
        "--step-limit",
        "4",
    )
    whole = small_run(tmp_path, "--run-name", "whole", *flags, "--total-updates", "6")
    assert measured(whole.folder)[-1]["loss_imitation"] > 0
    for updates in ("3", "6"):
        parts = small_run(tmp_path, "--run-name", "parts", *flags, "--total-updates", updates)
    assert differences(lasting_state(whole.folder), lasting_state(parts.folder)) == []
    assert measured(whole.folder) == measured(parts.folder)
