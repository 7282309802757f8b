"""Steering a run: what is asked for with the token happens and is logged; anything else is refused."""

from __future__ import annotations

import json
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.run.small_runs import Quiet, small_config
from warpzone.errors import ConfigError
from warpzone.run.control import REQUEST_FILE, STATE_FILE, TOKEN_FILE, check_request, is_token, send_request
from warpzone.run.loop import Outcome, train


class Steering(Quiet):
    """A display that sends requests to the run after given updates."""

    def __init__(self, folder: Path, requests: dict[int, dict[str, Any]]) -> None:
        super().__init__()
        self.folder, self.requests = folder, requests

    def update(self, record: dict[str, Any]) -> None:
        super().update(record)
        request = self.requests.get(record["update"])
        if request is not None:
            token = request.pop("token", None) or (self.folder / TOKEN_FILE).read_text().strip()
            send_request(self.folder, token, request)


def steer(runs: Path, requests: dict[int, dict[str, Any]], *flags: str) -> tuple[Outcome, Steering]:
    display = Steering(runs / "steered", requests)
    config = small_config(runs, "--run-name", "steered", "--total-updates", "8", *flags)
    return train(config, display), display


def said(display: Quiet) -> list[str]:
    return [line for line in display.lines if "control" in line]


def test_files_of_a_run_are_for_its_owner_only_and_its_token_outlives_a_session(tmp_path: Path) -> None:
    modes = {}

    class Looking(Quiet):
        def update(self, record: dict[str, Any]) -> None:
            for name in (TOKEN_FILE, REQUEST_FILE):
                modes[name] = stat.S_IMODE((tmp_path / "steered" / name).stat().st_mode)

    train(small_config(tmp_path, "--run-name", "steered", "--total-updates", "1"), Looking())
    assert modes == {TOKEN_FILE: 0o600, REQUEST_FILE: 0o600}
    first = (tmp_path / "steered" / TOKEN_FILE).read_text()
    train(small_config(tmp_path, "--run-name", "steered", "--total-updates", "2"), Quiet())
    assert (tmp_path / "steered" / TOKEN_FILE).read_text() == first
    assert not (tmp_path / "steered" / REQUEST_FILE).exists()
    assert is_token(tmp_path / "steered", first.strip())
    assert not is_token(tmp_path / "steered", "")


def test_settings_change_from_the_next_update_on_and_the_log_says_so(tmp_path: Path) -> None:
    values = {"learning_rate": 2e-4, "entropy_coef": 0.05, "reward_flag": 99}
    outcome, display = steer(tmp_path, {3: {"command": "set", "values": values}})
    rates = {record["update"]: record["learning_rate"] for record in display.records}
    entropies = {record["update"]: record["entropy_coef"] for record in display.records}
    assert rates[3] > 5e-4
    assert rates[4] == pytest.approx(2e-4, rel=0.01)
    assert rates[8] < rates[4]
    assert entropies[4] == pytest.approx(0.05, rel=0.01)
    line = said(display)[0]
    assert "update 3" in line
    assert "-> 0.0002" in line
    assert "reward_flag 300 -> 99" in line
    assert line in (outcome.folder / "train.log").read_text()
    state = json.loads((outcome.folder / STATE_FILE).read_text())
    assert state["values"]["reward_flag"] == 99
    assert state["results"][-1]["accepted"] is True


def test_the_stage_mix_decides_which_stages_come_next(tmp_path: Path) -> None:
    mix = {"command": "set", "values": {"stage_mix": {"1-2": 1}}}
    _, display = steer(tmp_path, {1: mix}, "--stages", "1-1,1-2")
    assert "1-1 50% 1-2 50% -> 1-2 100%" in said(display)[0]


def test_a_stage_the_run_does_not_have_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    wrong = {"command": "set", "values": {"learning_rate": 1e-5, "stage_mix": {"8-4": 1}}}
    _, display = steer(tmp_path, {2: wrong})
    assert "refused: '8-4' is not among this run's stages" in said(display)[0]
    assert display.records[-1]["learning_rate"] > 5e-4


def test_a_request_without_the_token_does_nothing(tmp_path: Path) -> None:
    outcome, display = steer(tmp_path, {2: {"command": "stop", "token": "guess"}})
    assert outcome.progress.update == 8
    assert "refused: The token is not this run's." in said(display)[0]


def test_stop_saves_and_ends_with_success(tmp_path: Path) -> None:
    outcome, _ = steer(tmp_path, {3: {"command": "stop"}})
    assert (outcome.progress.update, outcome.reason, outcome.exit_code) == (3, "stopped by control", 0)
    assert (outcome.folder / "checkpoints" / "latest.pt").exists()


def test_checkpoint_now_saves_at_that_update(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    class Asking(Steering):
        def update(self, record: dict[str, Any]) -> None:
            super().update(record)
            sidecar = self.folder / "checkpoints" / "latest.json"
            if record["update"] == 4:
                seen["saved"] = json.loads(sidecar.read_text())["global_update"]

    display = Asking(tmp_path / "steered", {2: {"command": "checkpoint"}})
    train(small_config(tmp_path, "--run-name", "steered", "--total-updates", "5"), display)
    assert seen == {"saved": 2}


def test_a_paused_run_waits_and_the_wait_is_no_training_time(tmp_path: Path) -> None:
    def go_on() -> None:
        folder = tmp_path / "steered"
        while not json.loads((folder / STATE_FILE).read_text())["paused"]:
            time.sleep(0.05)
        time.sleep(2.0)
        send_request(folder, (folder / TOKEN_FILE).read_text().strip(), {"command": "resume"})

    class Helped(Steering):
        def update(self, record: dict[str, Any]) -> None:
            super().update(record)
            if record["update"] == 2:
                threading.Thread(target=go_on, daemon=True).start()

    display = Helped(tmp_path / "steered", {2: {"command": "pause"}})
    outcome = train(small_config(tmp_path, "--run-name", "steered", "--total-updates", "4"), display)
    assert outcome.progress.update == 4
    _, second, third, _ = display.records
    trained_s = third["elapsed_s"] - second["elapsed_s"]
    assert trained_s < third["timestamp"] - second["timestamp"] - 1.0
    assert [line.rpartition(": ")[2] for line in said(display)] == ["paused", "resumed"]


def test_lines_that_are_no_requests_are_refused_and_training_goes_on(tmp_path: Path) -> None:
    class Scribbling(Quiet):
        def update(self, record: dict[str, Any]) -> None:
            super().update(record)
            if record["update"] == 1:
                with (tmp_path / "steered" / REQUEST_FILE).open("ab") as file:
                    file.write(b"\xff\x00\n[1]\nnull\n" + b"[" * 5000 + b'\n{"token": 5}\nhalf a line')

    display = Scribbling()
    outcome = train(small_config(tmp_path, "--run-name", "steered", "--total-updates", "3"), display)
    assert outcome.progress.update == 3
    assert len(said(display)) == 5
    assert all("refused" in line for line in said(display))


def test_settings_may_stand_beside_the_command() -> None:
    under = check_request({"command": "set", "values": {"learning_rate": 2e-4}})
    assert check_request({"command": "set", "learning_rate": 2e-4, "token": "x", "id": "1"}) == under


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        ({}, "There is no request"),
        ({"command": "rm"}, "There is no request"),
        ({"command": "set"}, "Name a setting to change"),
        ({"command": "set", "gamma": 0.5}, "can't be changed"),
        ({"command": "set", "values": {"learning_rate": 1}}, "between 1e-07 and 0.1"),
        ({"command": "set", "values": {"learning_rate": True}}, "must be a number"),
        ({"command": "set", "values": {"learning_rate": float("nan")}}, "must be a number"),
        ({"command": "set", "values": {"reward_flag": "many"}}, "must be a number"),
        ({"command": "set", "values": {"reward_flag": 10**400}}, "must be a number"),
        ({"command": "set", "values": {"gamma": 0.5}}, "can't be changed"),
        ({"command": "set", "values": {"stage_mix": {"1-1": -1}}}, "Shares of stages"),
        ({"command": "set", "values": {"stage_mix": {"1-1": 0}}}, "one must be positive"),
        ({"command": "set", "values": {"stage_mix": []}}, "stage_mix gives"),
    ],
)
def test_what_is_out_of_bounds_is_said_in_one_sentence(request_: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        check_request(request_)
