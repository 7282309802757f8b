"""The state file: whole after any crash, refused where it is another master's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from warpzone.errors import ConfigError
from warpzone.master import run
from warpzone.master.opening import open_state
from warpzone.master.plan import MasterConfig, make_plan
from warpzone.master.state import Learner, State, read_state
from warpzone.master.verdict import mean_rate, short_of_target
from warpzone.master.work import Work


def config_in(folder: Path) -> MasterConfig:
    return MasterConfig(stages="1-1,1-2", minutes=10, preset="cpu", out=folder)


def opened(config: MasterConfig, rom: str = "abc") -> State:
    return open_state(config, make_plan(config, cores=2), rom)


def test_what_is_saved_is_read_and_interrupted_runs_wait_for_their_turn(tmp_path: Path) -> None:
    state = opened(config_in(tmp_path))
    state.phases["specialists"].spent_s = 33.5
    state.specialists["1-1"].status = "done"
    state.specialists["1-2"].status = "running"
    state.specialists["1-2"].turn_left_s = 12.0
    state.policies["student"] = Learner(["1-1", "1-2"], status="failed", error="no disk", turns=1)
    state.save(tmp_path)
    assert asdict(read_state(tmp_path) or State({})) == asdict(state)
    again = opened(config_in(tmp_path))
    assert again.spent_s == 33.5
    assert [one.status for one in again.specialists.values()] == ["done", "waiting"]
    assert again.specialists["1-2"].turn_left_s == 12.0
    assert (again.policies["student"].status, again.policies["student"].error) == ("waiting", "")


def test_more_minutes_are_fine_and_plan_anew(tmp_path: Path) -> None:
    opened(config_in(tmp_path)).save(tmp_path)
    state = opened(replace(config_in(tmp_path), minutes=20))
    assert state.phases["distil"].planned_s == pytest.approx(0.25 * 1200)


def test_more_minutes_for_one_that_is_done_are_divided_anew(tmp_path: Path) -> None:
    three = replace(config_in(tmp_path), stages="1-1,1-2,1-3")
    state = opened(three)
    state.status, state.rounds = "done", [30.0, 40.0]
    for phase in state.phases.values():
        phase.spent_s, phase.status = 120.0, "done"
    state.specialists["1-1"].status = state.specialists["1-3"].status = "done"
    state.specialists["1-2"].status, state.specialists["1-2"].decisions = "ended", 5000
    outcomes = [tmp_path / f"specialist-{stage}" / "outcome.json" for stage in ("1-1", "1-3")]
    for outcome in outcomes:
        outcome.parent.mkdir()
        outcome.write_text("{}")
    stages = ["1-1", "1-2", "1-3"]
    state.policies = {"student": Learner(stages, status="ended"), "polished": Learner(stages, status="ended")}
    sampled = {stage: {"clear_rate": 0.95} for stage in stages}
    randomly = {**sampled, "1-3": {"clear_rate": 0.5}}
    state.evaluations = {"student/sharper": {"sampled": sampled, "random start": randomly}, "polished": {}}
    state.chosen = "student/sharper"
    (tmp_path / "agent.safetensors").write_bytes(b"weights")
    state.save(tmp_path)
    assert opened(three).status == "done"  # no time was added
    config = replace(three, minutes=20)
    again = opened(config)
    assert (again.status, again.from_s, again.polished_run) == ("running", 600.0, "polished-2")
    assert {phase.status for phase in again.phases.values()} == {"waiting"}
    # Those of stages on which the agent is short of the target train on.
    assert [one.status for one in again.specialists.values()] == ["done", "ended", "waiting"]
    # What it had reached must not count as the target met again.
    assert [outcome.exists() for outcome in outcomes] == [True, False]
    assert again.specialists["1-3"].turns == 2  # its next turn has a length of its own
    assert [one.status for one in again.policies.values()] == ["waiting", "ended"]
    # The agent stays, with its evaluation.
    assert again.evaluations == {"agent-1": state.evaluations["student/sharper"]}
    assert (tmp_path / "agent-1" / "agent.safetensors").read_bytes() == b"weights"
    assert again.specialists["1-2"].decisions_before == 5000  # nothing of its run is left
    plan = make_plan(config, cores=2)
    assert plan.ends_at("explore", again.from_s) == pytest.approx(600 + 0.08 * 600)
    assert plan.ends_at("evaluate", again.from_s) == pytest.approx(1200)


def test_more_minutes_that_come_in_the_evaluation_are_trained_on_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = opened(config_in(tmp_path))
    for phase in state.phases.values():
        phase.spent_s, phase.status = 100.0, "done"
    state.phases["evaluate"].status = "running"
    state.save(tmp_path)
    worked: list[tuple[str, float]] = []

    def phase_of(name: str) -> Callable[[Work], None]:
        def do(work: Work) -> None:
            worked.append((name, work.state.from_s))
            work.state.phases[name].spent_s += 100

        return do

    monkeypatch.setattr(run, "PHASES", {name: phase_of(name) for name in state.phases})

    def go_on(minutes: float) -> State:
        config = replace(config_in(tmp_path), minutes=minutes)
        plan = make_plan(config, cores=2)
        state = open_state(config, plan, "abc")
        assert run._work(config, plan, state, {}, lambda state: None, lambda line: None, None) == 0
        return state

    assert go_on(18.5).status == "done"
    assert worked == [("evaluate", 0.0), *((name, 600.0) for name in state.phases)]
    worked.clear()
    assert not go_on(18.5).extended  # the minutes are those it had
    assert worked == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"stages": "1-1"}, "stages '1-1,1-2' there and '1-1' here"),
        ({"seed": 3}, "seed 0 there and 3 here"),
        ({"train_flags": "--num-envs 8"}, "train_flags '' there and '--num-envs 8' here"),
    ],
)
def test_a_folder_of_another_master_is_refused_with_what_differs(
    changed: dict[str, object], said: str, tmp_path: Path
) -> None:
    opened(config_in(tmp_path)).save(tmp_path)
    with pytest.raises(ConfigError, match=said):
        opened(replace(config_in(tmp_path), **changed))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="rom_sha256 'abc' there and 'def' here"):
        opened(config_in(tmp_path), rom="def")


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"settings": {}, "phases": 3}', "{"),
        '{"settings": 5, "phases": {}, "specialists": {}, "policies": {}}',
    ],
)
def test_a_file_that_is_no_state_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "master.json").write_text(text)
    with pytest.raises(ConfigError, match="is not the state of a master's run"):
        opened(config_in(tmp_path))


def test_the_card_says_which_stages_are_short_and_why() -> None:
    rates = {"1-1": 0.95, "1-2": 0.0, "1-3": 0.4, "1-4": 0.5, "2-1": 0.7}
    state = State({"target": 0.9})
    state.specialists = {
        "1-1": Learner(["1-1"], status="done", clear_rate={"1-1": 0.97}),
        "1-2": Learner(["1-2"]),
        "1-3": Learner(["1-3"], status="failed", error="no space left"),
        "1-4": Learner(["1-4"], status="done", clear_rate={"1-4": 0.98}),
        "2-1": Learner(["2-1"], status="ended", clear_rate={"2-1": 0.75}),
    }
    rows = {stage: {"clear_rate": rate} for stage, rate in rates.items()}
    randomly = {**rows, "1-1": {"clear_rate": 0.8}}
    state.evaluations["student"] = {"sampled": rows, "random start": randomly}
    assert short_of_target(state, "student") == {
        "1-1": "sampled 95%, random start 80%: lost in distillation: its specialist clears 97%",
        "1-2": "sampled 0%, random start 0%: never cleared",
        "1-3": "sampled 40%, random start 40%: its specialist failed: no space left",
        "1-4": "sampled 50%, random start 50%: lost in distillation: its specialist clears 98%",
        "2-1": "sampled 70%, random start 70%: clears, but too seldom: its specialist 75%",
    }
    modes = {"sampled": rows, "sticky": rows, "random start": randomly, "greedy": {}}
    assert mean_rate(modes) == pytest.approx(0.5)
    json.dumps(asdict(state))
