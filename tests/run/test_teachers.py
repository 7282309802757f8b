"""A run that follows agents which have learned its stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warpzone.cli.export import run as export
from warpzone.errors import ConfigError
from warpzone.run.build import rom_digest
from warpzone.run.device import resolve_device
from warpzone.run.teachers import load_teachers

from .small_runs import Quiet, differences, lasting_state, measured, small_config, small_run

TAUGHT = ("--teacher-rate", "0", "--learner", "auto")


def train_teacher(runs: Path, name: str, stages: str, *flags: str) -> None:
    small_run(runs, "--run-name", name, "--stages", stages, "--total-updates", "1", *flags)


def test_a_run_follows_the_runs_and_files_of_a_folder(tmp_path: Path) -> None:
    teachers = tmp_path / "teachers"
    train_teacher(teachers, "one", "1-1")
    train_teacher(tmp_path / "elsewhere", "two", "1-2", "--encoder", "small")
    agent = teachers / "two.safetensors"
    export([str(tmp_path / "elsewhere" / "two"), "--format", "safetensors", "--out", str(agent)])
    display = Quiet()
    flags = ("--stages", "1-1,1-2,1-3", "--teachers", str(teachers), *TAUGHT, "--total-updates", "2")
    small_run(tmp_path / "runs", *flags, display=display)
    assert "[train] 2 of 3 stages have a teacher: 1-1 one, 1-2 two, 1-3 nobody" in display.lines
    assert all(record["loss_teacher"] > 0 for record in display.records)


def test_the_one_that_clears_most_often_teaches(tmp_path: Path) -> None:
    teachers = tmp_path / "teachers"
    for name, rate in (("a", "0.6"), ("b", "0.9"), ("c", "0.7")):
        train_teacher(tmp_path / "runs", name, "1-1", "--seed", str(ord(name)))
        export(
            [
                str(tmp_path / "runs" / name),
                "--format",
                "safetensors",
                "--out",
                str(teachers / f"{name}.safetensors"),
            ]
        )
        card = teachers / f"{name}.json"
        card.write_text(card.read_text().replace('"clear_rate": {}', f'"clear_rate": {{"1-1": {rate}}}'))
    config = small_config(tmp_path, "--teachers", str(teachers))
    found = load_teachers(config, rom_digest(config), resolve_device(config), print, tmp_path / "mario")
    (teachers / "a.safetensors").unlink()
    (teachers / "c.safetensors").unlink()
    alone = load_teachers(config, rom_digest(config), resolve_device(config), print, tmp_path / "mario")
    assert found is not None
    assert alone is not None
    assert differences(found.policies[0].state_dict(), alone.policies[0].state_dict()) == []


def test_a_run_among_its_teachers_does_not_follow_itself(tmp_path: Path) -> None:
    train_teacher(tmp_path, "one", "1-1")
    for updates in ("1", "2"):
        display = Quiet()
        flags = ("--run-name", "all", "--stages", "1-1,1-2", "--teachers", str(tmp_path), *TAUGHT)
        small_run(tmp_path, *flags, "--total-updates", updates, display=display)
        assert "[train] 1 of 2 stages have a teacher: 1-1 one, 1-2 nobody" in display.lines


def test_a_run_with_teachers_resumes_to_the_same_bits(tmp_path: Path) -> None:
    train_teacher(tmp_path / "teachers", "one", "1-1")
    flags = ("--teachers", str(tmp_path / "teachers"), *TAUGHT)
    whole = small_run(
        tmp_path, "--run-name", "whole", *flags, "--anneal-updates", "6", "--total-updates", "6"
    )
    for updates in ("3", "6"):
        parts = small_run(
            tmp_path, "--run-name", "parts", *flags, "--anneal-updates", "6", "--total-updates", updates
        )
    assert differences(lasting_state(whole.folder), lasting_state(parts.folder)) == []
    assert measured(whole.folder) == measured(parts.folder)


def test_a_run_itself_may_be_the_teacher(tmp_path: Path) -> None:
    train_teacher(tmp_path, "one", "1-1")
    display = Quiet()
    flags = ("--run-name", "b", "--teachers", str(tmp_path / "one"), *TAUGHT, "--total-updates", "1")
    small_run(tmp_path, *flags, display=display)
    assert "[train] 1 of 1 stages have a teacher: 1-1 one" in display.lines


UNFIT = {
    "its action_type is 'simple' and this run's is 'complex'": ("--action-type", "complex"),
    "its frames are (26, 32) and this run's only (20, 20)": ("--size", "20", "20"),
}


@pytest.mark.parametrize("reason", UNFIT)
def test_one_that_does_not_fit_is_left_out_with_the_reason(reason: str, tmp_path: Path) -> None:
    teachers = tmp_path / "teachers"
    train_teacher(teachers, "good", "1-1", *UNFIT[reason])
    train_teacher(teachers, "odd", "1-1,1-2")
    train_teacher(teachers, "elsewhere", "8-1")
    (teachers / "broken.safetensors").write_bytes(b"no weights")
    (teachers / "broken.json").write_text("[1, 2]")
    display = Quiet()
    here = (
        "--stages",
        "1-1,1-2",
        "--teachers",
        str(teachers),
        *TAUGHT,
        *UNFIT[reason],
        "--total-updates",
        "1",
    )
    small_run(tmp_path, *here, display=display)
    unreadable, *said = [line for line in display.lines if "teach" in line]
    assert unreadable.startswith("[train] broken.safetensors can't teach here: ")
    assert "broken.json is not a JSON object" in unreadable
    assert said == [
        f"[train] odd can't teach here: {reason}",
        "[train] 1 of 2 stages have a teacher: 1-1 good, 1-2 nobody",
    ]


def test_a_teacher_with_a_memory_or_of_another_rom_is_left_out(tmp_path: Path) -> None:
    teachers = tmp_path / "teachers"
    train_teacher(teachers, "gru", "1-1", "--recurrent-type", "gru", "--learner", "torch")
    train_teacher(tmp_path / "runs", "other", "1-1")
    export(
        [
            str(tmp_path / "runs" / "other"),
            "--format",
            "safetensors",
            "--out",
            str(teachers / "other.safetensors"),
        ]
    )
    card = json.loads((teachers / "other.json").read_text())
    (teachers / "other.json").write_text(json.dumps({**card, "rom_sha256": "0" * 64}))
    display = Quiet()
    with pytest.raises(ConfigError, match="Nobody in"):
        small_run(tmp_path, "--teachers", str(teachers), *TAUGHT, "--total-updates", "1", display=display)
    assert [line.partition(": ")[2] for line in display.lines if "can't teach" in line] == [
        "it has a memory, and what it remembers is not known here",
        "it learned on another ROM",
    ]
    (teachers / "other.json").write_text(json.dumps({**card, "config": {}}))
    with pytest.raises(ConfigError, match="Nobody in"):
        small_run(tmp_path, "--teachers", str(teachers), *TAUGHT, "--total-updates", "1", display=display)
    (teachers / "other.json").write_text(json.dumps({**card, "clear_rate": {"1-1": 1.0}, "config": {}}))
    with pytest.raises(ConfigError, match="Nobody in"):
        small_run(tmp_path, "--teachers", str(teachers), *TAUGHT, "--total-updates", "1", display=display)
    assert "[train] other.safetensors can't teach here: nothing says how it sees the game" in display.lines


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"clear_rate": None}, "clear_rate is None"),
        ({"clear_rate": {"1-1": "often"}}, "1-1 is 'often'"),
        ({"config": None}, "config is None"),
        ({"config": {"view": 3, "model": {}}}, "The saved ViewConfig is 3"),
        ({"config": {"stage": {"stages": "99-9"}}}, "There is no stage '99-9'"),
    ],
)
def test_a_damaged_card_is_named_and_not_a_traceback(
    damage: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "agent.safetensors").write_bytes(b"")
    (tmp_path / "agent.json").write_text(json.dumps({"clear_rate": {"1-1": 1.0}, "config": {}, **damage}))
    display = Quiet()
    with pytest.raises(ConfigError, match="Nobody in"):
        small_run(tmp_path, "--teachers", str(tmp_path), "--total-updates", "1", display=display)
    (said,) = [line for line in display.lines if "agent.safetensors can't teach here" in line]
    assert reason in said


def test_where_nobody_can_teach_the_run_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    teachers = tmp_path / "teachers"
    train_teacher(teachers, "one", "1-1")
    here = ("--run-name", "b", "--teachers", str(teachers), *TAUGHT, "--total-updates", "1")
    with pytest.raises(ConfigError, match=r"Nobody in .* clears one of the stages in 50% of its episodes"):
        small_run(tmp_path, *here, "--teacher-rate", "0.5")
    with pytest.raises(ConfigError, match="There is no folder"):
        small_run(tmp_path, *here, "--teachers", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="follows nobody"):
        small_run(tmp_path, *here, "--learner", "native")
    with pytest.raises(ConfigError, match="teacher_rate must be from 0 to 1"):
        small_run(tmp_path, *here, "--teacher-rate", "2")
    assert not (tmp_path / "b").exists()
