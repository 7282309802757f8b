"""How the time is divided, who learns which stages, and that every recipe is one that `train` takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from warpzone.cli.master import planned_commands
from warpzone.cli.train import settings
from warpzone.envs.stages import ALL_STAGES
from warpzone.errors import ConfigError
from warpzone.master.phases import frame_skip_in
from warpzone.master.plan import (
    LEAST_NEED,
    MasterConfig,
    anneal_steps,
    default_parallel,
    make_plan,
    need,
    specialists_of,
    split_flags,
    turn_s,
)
from warpzone.master.recipes import words
from warpzone.master.state import Learner
from warpzone.run.config import Preset


def test_stages_that_look_alike_share_a_specialist_where_both_are_asked_for() -> None:
    groups = specialists_of(ALL_STAGES)
    assert len(groups) == 30
    assert groups["2-2+7-2"] == ("2-2", "7-2")
    assert groups["2-3+7-3"] == ("2-3", "7-3")
    assert sorted(stage for stages in groups.values() for stage in stages) == sorted(ALL_STAGES)
    assert specialists_of(["7-2", "1-1"]) == {"7-2": ("7-2",), "1-1": ("1-1",)}


@pytest.mark.parametrize(("preset", "explore"), [("cpu", 0.08), ("gpu", 0.04)])
def test_phases_end_one_after_the_other_and_the_last_with_the_time(preset: Preset, explore: float) -> None:
    plan = make_plan(MasterConfig(stages="1", minutes=40, preset=preset), cores=2)
    ends = [plan.ends_at(phase) for phase in plan.shares()]
    assert ends == sorted(ends)
    assert ends[0] == pytest.approx(explore * 2400)
    assert ends[-1] == pytest.approx(2400)
    assert plan.parallel == 1


def test_a_single_specialist_has_the_time_of_distillation_too() -> None:
    plan = make_plan(MasterConfig(stages="1-1", minutes=10, preset="cpu"), cores=2)
    assert plan.shares()["distil"] == 0
    assert plan.ends_at("specialists") == plan.ends_at("distil") == pytest.approx(0.83 * 600)


def test_too_few_minutes_are_refused_with_a_number_that_works() -> None:
    config = MasterConfig(stages="all", minutes=1, preset="cpu")
    with pytest.raises(
        ConfigError, match=r"1 minutes are too few .*'specialists'.* --minutes 10 or"
    ) as refused:
        make_plan(config, cores=2)
    assert "fewer stages" in str(refused.value)
    make_plan(replace(config, minutes=10), cores=2)


@pytest.mark.parametrize(
    ("preset", "cores", "at_once"),
    [("gpu", 16, 8), ("gpu", 2, 1), ("gpu", 1, 1), ("gpu", 64, 8), ("cpu", 2, 1), ("cpu", 8, 4)],
)
def test_as_many_train_at_once_as_the_machine_carries(preset: str, cores: int, at_once: int) -> None:
    assert default_parallel(preset, cores) == at_once


def test_a_turn_is_neither_too_short_to_learn_from_nor_longer_than_the_time_left() -> None:
    assert turn_s(200, 600) == 200
    assert turn_s(1800, 600) == 600
    assert turn_s(1, 30) == 10
    assert turn_s(1, 5) == 5


def test_a_specialist_needs_the_more_the_further_its_worst_stage_is_below_the_target() -> None:
    def rates(**by_stage: float) -> Learner:
        return Learner(list(by_stage), clear_rate=by_stage)

    assert need(Learner(["1-1"]), 0.9) == 1
    assert need(rates(a=0.45), 0.9) == pytest.approx(0.5)
    assert need(rates(a=0.9, b=0.45), 0.9) == pytest.approx(0.5)
    assert need(rates(a=0.97), 0.9) == LEAST_NEED  # it may be done, and time is not lost on that


def test_schedules_end_with_the_time() -> None:
    assert anneal_steps(50_000, 1000.0, 60) == 110_000
    assert anneal_steps(0, 0.0, 0) == 1


def test_later_flags_win_and_switches_have_two_forms() -> None:
    assert words({"a": 1, "on": True, "off": False}, {"a": 2}) == ["--a", "2", "--on", "--no-off"]


@pytest.mark.parametrize("preset", ["cpu", "gpu"])
@pytest.mark.parametrize("stages", ["all", "8-4"])
def test_every_command_is_one_that_train_takes(preset: Preset, stages: str, tmp_path: Path) -> None:
    config = MasterConfig(
        stages=stages, minutes=90, preset=preset, out=tmp_path / "m", train_flags="--num-envs 512"
    )  # fmt: skip
    commands = planned_commands(config, make_plan(config, cores=16))
    assert len(commands) == (32 if stages == "all" else 2)
    for name, command in commands.items():
        resolved = settings(command[1:], {})
        assert resolved.run.run_name == name
        assert resolved.collect.num_envs == 512
        assert resolved.view.action_type == "complex"
    maze = settings(commands["specialist-8-4"][1:], {})
    assert (maze.learn.gamma, maze.collect.noisy_sticky) == ({"cpu": 0.985, "gpu": 0.99}[preset], 0)
    assert (maze.view.stall_limit, maze.learn.bootstrap_stalls) == ((120, True), (60, False))[preset == "gpu"]
    if stages == "all":
        assert settings(commands["specialist-6-4"][1:], {}).trail.trail_patience == 0
        assert settings(commands["specialist-6-3"][1:], {}).trail.trail_patience > 0
        water = settings(commands["specialist-2-2+7-2"][1:], {})
        assert (water.learn.minibatch_size, water.trail.trail_patience) == (
            {"cpu": 256, "gpu": 2048}[preset], {"cpu": 500_000, "gpu": 0}[preset],
        )  # fmt: skip
        assert settings(commands["specialist-1-1"][1:], {}).collect.noisy_sticky == 0.25
    polished = settings(commands["polished"][1:], {})
    assert polished.collect.noisy_sticky == 0.25
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"minutes": -1.0}, "--minutes must be 0 or more, and finite, not -1"),
        ({"minutes": float("nan")}, "finite, not nan"),
        ({"minutes": float("inf")}, "finite, not inf"),
        ({"parallel": -2}, "--parallel must be 0 or more, not -2"),
        ({"out": Path(__file__)}, "test_plan.py is a file"),
        ({"target": 1.5}, "--target is a rate"),
        ({"episodes": 0}, "--episodes"),
        ({"stages": "game"}, "not a stage to master"),
        ({"stages": "9-1"}, "There is no stage"),
        ({"train_flags": "'--a"}, "check its quotes"),
        ({"train_flags": "--gamma 0.9 --run_name=x"}, "can't have --run_name=x"),
        ({"train_flags": "--stages 1-2"}, "can't have --stages"),
    ],
)
def test_bad_settings_are_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(MasterConfig(**{"minutes": 60.0, **changed}), cores=2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("--num-envs 8", []),
        ("--frame-skip 2 --num-envs 8", ["--frame-skip", "2"]),
        ("--num-envs 8 --frame-skip=3", ["--frame-skip=3"]),
    ],
)
def test_trails_are_searched_with_the_frame_skip_of_the_training(flags: str, found: list[str]) -> None:
    assert frame_skip_in(split_flags(flags)) == found
